#!/usr/bin/env python3
"""Installs the Python module of a build into a temporary prefix and runs its tests there.

    run_tests.py BUILD_FOLDER [PYTEST_ARGUMENTS]

Exit status 77 (skipped) if pytest and numpy cannot be installed from PyPI."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    made = subprocess.run([ROOT / "scripts/dev/python_venv.sh"], capture_output=True, text=True)
    if made.returncode != 0:
        print(made.stderr.strip())
        return 77 if "pip could not install" in made.stderr else 1
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / "prefix"
        for component in ("libraries", "python"):
            subprocess.run(["cmake", "--install", build, "--component", component, "--prefix",
                            prefix], check=True, stdout=subprocess.DEVNULL)
        package = next(prefix.rglob("nmt/__init__.py")).parent
        env = dict(os.environ, PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1",
                   NMT_BIN=str(build / "bin"))
        env.pop("LD_LIBRARY_PATH", None)
        return subprocess.run([made.stdout.strip(), "-m", "pytest", "-q", "-p", "no:cacheprovider",
                               ROOT / "python/tests", *sys.argv[2:]], env=env,
                              cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
