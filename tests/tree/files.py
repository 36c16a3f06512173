"""The files of the source tree, for the checks in this folder."""
import pathlib
import subprocess
import sys

SKIPPED = {".git", "__pycache__", ".venv"}
CODE = {".cpp", ".h", ".cu", ".cuh"}
IMAGES = {".png", ".jpg", ".svg", ".gif"}
GOLDEN = "tests/golden/"  # data that releases wrote


def project_files(root):
    """Paths relative to the root, with / between folders: what git tracks or would add, or in an
    unpacked archive everything but build folders."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], capture_output=True)
        if listed.returncode != 0:
            sys.exit(f"git ls-files: {listed.stderr.decode(errors='replace').strip()}")
        names = sorted(set(listed.stdout.decode().split("\0")) - {""})
        return [name for name in names if (root / name).is_file()]
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")
                  if path.is_file() and not SKIPPED & set(path.relative_to(root).parts)
                  and not path.relative_to(root).parts[0].startswith("build"))


def text_of(root, name):
    """The text of a file, or None where it is not UTF-8."""
    try:
        return (root / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def suffix(name):
    return pathlib.PurePosixPath(name).suffix
