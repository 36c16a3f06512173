"""The Python packages of other scorers, which scripts/bench/quality/score.sh installs."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def start_again_with(package):
    """Runs the test with the Python that has the package, or ends it with status 77 (skipped)."""
    if os.environ.get("NMT_TEST_PYTHON"):
        print(f"skipped: {package} cannot be imported")
        sys.exit(77)
    made = subprocess.run([ROOT / "scripts/bench/quality/score.sh", "--python"],
                          capture_output=True, text=True)
    if made.returncode != 0:
        print(f"skipped: {package} cannot be installed:", made.stderr.strip())
        sys.exit(77)
    os.environ["NMT_TEST_PYTHON"] = "1"
    python = made.stdout.strip()
    os.execv(python, [python, *sys.argv])
