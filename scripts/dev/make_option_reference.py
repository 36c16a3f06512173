#!/usr/bin/env python3
"""Writes docs/reference/options.md from the option tables of the programs.

    make_option_reference.py BIN_DIR [--check]

--check compares the page with the programs and writes nothing; exit status 1: it is not current."""
import argparse
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))
from common import arguments  # noqa: E402

PAGE = ROOT / "docs/reference/options.md"
HEAD = """# Options

Every option of every program, as `PROGRAM --help=markdown` prints them.
`scripts/dev/make_option_reference.py` writes this page; do not edit it.

Flags are switched off by `--no-FLAG` or `--FLAG=false`. Names may contain `_` instead of `-`. Files
for `--config` use the same names, without the leading dashes.
"""
# nmt-vocab has commands, each with its options.
COMMANDS = {"nmt-vocab": (["train"], ["inspect"])}


def wrapped(text):
    """Paragraphs at 100 columns; tables, headings and code as they are."""
    lines, code = [], False
    for line in text.splitlines():
        code ^= line.startswith("```")
        is_prose = line and not code and line[0] not in "|#`"
        lines += textwrap.wrap(line, 100) if is_prose else [line]
    return "\n".join(lines) + "\n"


def page(programs):
    text = HEAD
    for program in sorted(path for path in programs.glob("nmt-*") if path.is_file()):
        for command in COMMANDS.get(program.name, ([],)):
            done = subprocess.run([program, *command, "--help=markdown"], capture_output=True,
                                  text=True, check=True)
            text += "\n" + wrapped(done.stdout)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="?", type=arguments.folder, default="build/bin",
                        metavar="BIN_DIR", help="folder of the programs (%(default)s)")
    parser.add_argument("--check", action="store_true", help="only compare the page")
    args = parser.parse_args()
    arguments.need_programs(args.programs,
                            *sorted(path.stem for path in (ROOT / "tools").glob("nmt-*.cpp")))
    text = page(args.programs)
    if not args.check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE}: not current; run scripts/dev/make_option_reference.py BIN_DIR")


if __name__ == "__main__":
    arguments.call(main)
