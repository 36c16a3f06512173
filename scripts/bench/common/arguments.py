"""Arguments of scripts: types for argparse, which reports a wrong one and exits with status
2, and readers of files that end the script with one line. docs/reference/exit-statuses.md
lists the statuses."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys

FAILED, USAGE, DATA = 1, 2, 3


def fail(message, status=DATA):
    print(f"{pathlib.Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(status)


def _number(convert, what, is_allowed):
    def read(text):
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not is_allowed(value):
            raise argparse.ArgumentTypeError(f"'{text}', expected {what}")
        return value
    return read


def whole(least=1, most=None):
    """An integer from `least` to `most`."""
    what = (f"an integer of at least {least}" if most is None
            else f"an integer from {least} to {most}")
    return _number(int, what, lambda value: least <= value <= (math.inf if most is None else most))


def number(least=-math.inf, above=-math.inf, most=math.inf):
    """A finite number of at least `least`, above `above` and at most `most`."""
    bounds = [f"{word} {bound:g}" for word, bound in (("of at least", least), ("above", above),
                                                      ("at most", most)) if math.isfinite(bound)]
    what = f"a number {' and '.join(bounds)}" if bounds else "a finite number"
    return _number(float, what,
                   lambda value: math.isfinite(value) and least <= value <= most and value > above)


def pattern(text):
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {error}") from None
    return text


def file(text):
    """An existing file that can be read."""
    return _existing(text, is_folder=False)


def folder(text):
    """An existing folder that can be read."""
    return _existing(text, is_folder=True)


def _existing(text, is_folder):
    path = pathlib.Path(text)
    try:
        path.stat()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from None
    if path.is_dir() != is_folder:
        raise argparse.ArgumentTypeError(f"{text}: is {'no' if is_folder else 'a'} folder")
    if not os.access(path, os.R_OK | (os.X_OK if is_folder else 0)):
        raise argparse.ArgumentTypeError(f"{text}: cannot be read")
    return path


def new_file(text):
    """A file to write, in an existing folder."""
    path = pathlib.Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: is a folder")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: {path.parent} is no folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text}: cannot be written")
    return path


def new_folder(text):
    """A folder to write to, which may not exist yet."""
    path = above = pathlib.Path(text)
    while not os.path.lexists(above) and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: {above} is no folder" if above != path
                                         else f"{text}: is no folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text}: {above} cannot be written")
    return path


def data_folder(parser, given, name, files):
    """The folder of --data, else $NMT_DATA/NAME, which must have these files."""
    if not given and not os.environ.get("NMT_DATA"):
        parser.error("no data: give --data FOLDER or set NMT_DATA")
    found = pathlib.Path(given or pathlib.Path(os.environ["NMT_DATA"]) / name)
    need(parser, "--data", *(found / file_name for file_name in files))
    return found


def need(parser, option, *paths):
    """Ends the script if one of these files cannot be read."""
    for path in paths:
        try:
            file(path)
        except argparse.ArgumentTypeError as error:
            parser.error(f"{option}: {error}")


def need_programs(bin_folder, *names):
    for name in names:
        if not (bin_folder / name).is_file():
            fail(f"{bin_folder / name}: is missing; build the programs, or name the folder of "
                 "another build", USAGE)


def read_text(path):
    """The text of a file in UTF-8."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        fail(f"{path}: {error.strerror}", USAGE)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        fail(f"{path}:{line}: invalid UTF-8")


def read_lines(path):
    """The lines of a text, which has some."""
    lines = read_text(path).removesuffix("\n").split("\n")
    if not any(line.strip() for line in lines):
        fail(f"{path}: has no text")
    return lines


def read_pair(source, target):
    """The lines of two texts, which have equal numbers of them."""
    sides = read_lines(source), read_lines(target)
    check_lengths((source, len(sides[0])), (target, len(sides[1])))
    return sides


def check_lengths(source, target):
    """Each side is a path and its number of lines."""
    if source[1] != target[1]:
        fail(f"{source[0]} has {source[1]:,} lines, but {target[0]} has {target[1]:,}")


def read_json(path, what="file in JSON", advice=None):
    """`what` says what the file should be, `advice` what to do if it is not."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        fail(f"{path}: is no {what}: {error}" + (f"; {advice}" if advice else ""))


def read_object(path, what, *keys, advice=None):
    """The JSON object of a file, which has these keys."""
    found = read_json(path, what, advice)
    missing = [key for key in keys if key not in found] if isinstance(found, dict) else ["object"]
    if missing:
        fail(f"{path}: is no {what}: it has no {missing[0]}" + (f"; {advice}" if advice else ""))
    return found


def reason(text):
    """The line of a program's output that says why it failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[-1]


def call(main):
    """Ends the script with the status that main() returns. A program that fails or a file that
    cannot be used is one line."""
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        said = (error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes)
                else error.stderr)
        fail(f"{pathlib.Path(str(error.cmd[0])).name}: status {error.returncode}"
             + (f": {reason(said)}" if said else ""), FAILED)
    except OSError as error:
        if error.filename is None:
            raise
        fail(f"{error.filename}: {error.strerror}", FAILED)
