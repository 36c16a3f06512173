#!/usr/bin/env python3
"""Checks that a unit and an option each stand in one place of the production code, so that adding
one touches no list elsewhere; check_architectures.py does so for architectures, check_floors.py
looks at programs.

- A unit is its header and its line in units.def: no other file of src, tools and cuda names one in
  quotes, but for the workloads of nmt-bench, the defaults of nmt-train and of the student of
  nmt-distill, and the units that cuDNN has.
- An option is declared once: no file of fields of src/config declares a name twice.

    check_places.py [SOURCE_DIR]

Exit status 1 and a line for every other place. scripts/dev/count_places.py adds one of each to a
copy of the tree and counts."""
import pathlib
import re
import sys

from files import CODE, project_files, suffix, text_of

MAY_NAME_UNITS = re.compile(r"src/app/benchmark/.*|src/units/.*|src/config/specs\.h|"
                            r"src/app/distill/student_defaults\.cpp|"
                            r"cuda/libraries/cudnn\.cpp|src/kernels/recurrent/cudnn\.h")


def named_elsewhere(texts, names, allowed, what):
    for file, text in texts.items():
        if allowed.fullmatch(file):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("//")[0]
            for name in re.findall(r'"([\w-]+)"', code):
                if name in names:
                    yield f'{file}:{number}: names the {what} "{name}"'


def unit_errors(root, texts):
    table = text_of(root, "src/units/units.def")
    units = set(re.findall(r'^NMT_(?:MATRIX_STATE_)?UNIT\("(\w+)"', table, re.M))
    headers = {pathlib.PurePosixPath(name).stem for name in texts
               if re.fullmatch(r"src/units/(?:matrix/)?\w+\.h", name)} - {"step", "matrix_state"}
    if not units:
        yield "src/units/units.def: no units"
    for name in sorted(units ^ headers):
        yield f"src/units: {name} is not both a header and a line of units.def"
    yield from named_elsewhere(texts, units, MAY_NAME_UNITS, "unit")


def option_errors(texts):
    count = 0
    for file, text in texts.items():
        names = re.findall(r'\bOption\(\s*"([\w-]+)"', text)
        count += len(names)
        if not re.fullmatch(r"src/config/\w+\.cpp", file):
            continue  # the lists of programs may offer one name in two forms
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{file}: declares --{name} {names.count(name)} times"
    if count < 80:
        yield f"only {count} options found"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    texts = {name: text_of(root, name) for name in project_files(root)
             if suffix(name) in CODE and name.split("/")[0] in ("src", "tools", "cuda", "include")}
    errors = [*unit_errors(root, texts), *option_errors(texts)]
    print("\n".join(errors) or f"{len(texts)} files name no unit or option twice")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
