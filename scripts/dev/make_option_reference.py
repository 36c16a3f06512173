#!/usr/bin/env python3
"""Writes docs/reference/options.md from the option tables of the programs.

    make_option_reference.py BIN_DIR [--check]

Options that all programs have are described once. Those that the programs of BASES share word for
word with another program are described there.
--check compares the page with the programs and writes nothing; exit status 1: it is not current."""
import argparse
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))
from common import arguments  # noqa: E402

PAGE = ROOT / "docs/reference/options.md"
COMMON = "Common options"
HEAD = f"""# Options

Every option of every program, with the texts of `PROGRAM --help=markdown`.
`scripts/dev/make_option_reference.py` writes this page; do not edit it.

Options that all programs have are in [{COMMON}](#common-options). `nmt-distill` and `nmt-info` have
many options of [nmt-train](#nmt-train), `nmt-score` and `nmt-serve` of
[nmt-translate](#nmt-translate); those with the same text, range and default are described there,
and paragraphs that begin with "As in" name them.

Flags are switched off by `--no-FLAG` or `--FLAG=false`. Names may contain `_` instead of `-`. Files
for `--config` use the same names, without the leading dashes.

## {COMMON}

"""
TABLE = ["| Option | Meaning |", "|---|---|"]
# nmt-vocab has commands, each with its options.
COMMANDS = {"nmt-vocab": (["train"], ["inspect"])}
# The programs that take most of their options from another one.
BASES = {"nmt-distill": "nmt-train", "nmt-info": "nmt-train", "nmt-score": "nmt-translate",
         "nmt-serve": "nmt-translate"}
# Fewer shared options of a group are repeated: a link would not be shorter.
MIN_SHARED = 3


def wrapped(text):
    """Paragraphs at 100 columns; tables, headings and code as they are."""
    lines, code = [], False
    for line in text.splitlines():
        code ^= line.startswith("```")
        is_prose = line and not code and line[0] not in "|#`"
        lines += textwrap.wrap(line, 100, break_on_hyphens=False) if is_prose else [line]
    return "\n".join(lines) + "\n"


def is_row(line):
    return line.startswith("| `")


def main_name(row):
    """| `-b --beam-size, --beam N` | ... -> --beam-size"""
    return re.search(r"--[\w-]+", row)[0]


def sections(text):
    """The output of --help=markdown: what stands above the groups, and the rows of each group by
    its heading, such as "nmt-train: data"."""
    head, *groups = re.split(r"(?m)^### ", text)
    found = {}
    for group in groups:
        heading, *lines = group.splitlines()
        rows = [line for line in lines if is_row(line)]
        if [line for line in lines if line] != TABLE + rows:
            sys.exit(f"{heading}: not only a table of options")
        found[heading] = rows
    return head, found


def reference(heading, rows):
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    names = ", ".join(f"`{main_name(row)}`" for row in rows)
    return f"As in [{heading}](#{anchor}): {names}."


def group_text(heading, rows, homes):
    """`homes`: the headings below which rows are described already."""
    shared = {}
    for row in rows:
        if row in homes:
            shared.setdefault(homes[row], []).append(row)
    shared = {home: found for home, found in shared.items() if len(found) >= MIN_SHARED}
    own = [row for row in rows if homes.get(row) not in shared]
    parts = ["\n".join(TABLE + own)] if own else []
    parts += [reference(home, found) for home, found in shared.items()]
    return "\n\n".join([f"### {heading}", *parts]) + "\n\n"


def common_rows(programs):
    """Rows that most programs have in their last group, in the order of nmt-train."""
    last = [list(groups.values())[-1] for _, groups in programs.values()]
    return [row for row in list(programs["nmt-train"][1].values())[-1]
            if sum(row in rows for rows in last) > len(last) / 2]


def page(folder):
    programs = {}
    for program in sorted(path for path in folder.glob("nmt-*") if path.is_file()):
        for command in COMMANDS.get(program.name, ([],)):
            done = subprocess.run([program, *command, "--help=markdown"], capture_output=True,
                                  text=True, check=True)
            programs[" ".join([program.name, *command])] = sections(done.stdout)
    common = common_rows(programs)
    text = HEAD + "\n".join(TABLE + common) + "\n\n"
    for name, (head, groups) in programs.items():
        homes = {}
        if name in BASES:
            homes = {row: heading for heading, rows in programs[BASES[name]][1].items()
                     for row in rows}
        homes.update(dict.fromkeys(common, COMMON))
        text += head + "".join(group_text(heading, rows, homes)
                               for heading, rows in groups.items())
    return wrapped(text.rstrip("\n"))


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
