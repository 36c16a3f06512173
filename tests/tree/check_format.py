#!/usr/bin/env python3
"""Checks the format of the source tree: C++ and CUDA files are as clang-format 14 writes them, and
lines of Python, shell, JavaScript, CSS, CMake and configurations have at most 100 characters. So
have those of Markdown, but for tables, links and blocks of code.

    check_format.py [SOURCE_DIR]

Exit status 1 and a line for every difference; 77 where there is no clang-format 14, whose result
other versions do not reproduce."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

from files import CODE, project_files, suffix, text_of

COLUMNS = 100
VERSION = "14"
FILES_PER_CALL = 16
SCRIPTS = {".py", ".pyi", ".sh", ".js", ".css", ".cmake"}  # and CMakeLists.txt
LINK = re.compile(r"\]\([^)]*\)|https?://\S+|^\[[^\]]+\]:.*")


def clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            out = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", out):
                return path
    return None


def code_errors(program, root, names):
    done = subprocess.run([program, "--dry-run", "-Werror", "--style=file", *names], cwd=root,
                          capture_output=True, text=True)
    places = sorted(set(re.findall(r"^(\S+?:\d+):\d+: error: code should be", done.stderr, re.M)))
    if done.returncode != 0 and not places:
        places = [done.stderr.strip()]
    return [f"{place}: differs from clang-format -i" for place in places]


def too_long(name, number, length):
    return f"{name}:{number}: {length} characters, more than {COLUMNS}"


def line_errors(name, text):
    return [too_long(name, number, len(line)) for number, line in enumerate(text.split("\n"), 1)
            if len(line) > COLUMNS]


def markdown_errors(name, text):
    found, in_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith("|"):
            length = len(LINK.sub("", line))
            if length > COLUMNS:
                found.append(too_long(name, number, length))
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    names = project_files(root)
    errors = [error for name in names if suffix(name) == ".md"
              for error in markdown_errors(name, text_of(root, name))]
    lined = [name for name in names if suffix(name) in SCRIPTS or name.endswith("CMakeLists.txt")
             or name.startswith("configs/")]
    errors += [error for name in lined for error in line_errors(name, text_of(root, name))]
    code = [name for name in names if suffix(name) in CODE]
    program = clang_format()
    if program:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            calls = [pool.submit(code_errors, program, root, code[at:at + FILES_PER_CALL])
                     for at in range(0, len(code), FILES_PER_CALL)]
            errors += [error for call in calls for error in call.result()]
    if errors or not code:
        print("\n".join(errors) or "no files found")
        return 1
    if not program:
        print(f"no clang-format {VERSION}: scripts/setup.sh installs it on Debian 12")
        return 77
    print(f"{len(code)} C++ and CUDA files are formatted; lines of {len(lined)} others are short")
    return 0


if __name__ == "__main__":
    sys.exit(main())
