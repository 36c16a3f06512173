#!/usr/bin/env python3
"""Cleans parallel text: removes unsuitable pairs of lines; the order is kept.

    scripts/data/clean_corpus.py SOURCE TARGET OUT_SOURCE OUT_TARGET [options]

SOURCE and TARGET may be lists with commas, for several inputs.

Lines are normalized: invalid UTF-8 and control characters are removed, white space is collapsed to
single spaces, Unicode is composed (NFC). A pair is removed when a side is empty; both sides are
equal (copied); a side has fewer words than --min-words, more than --max-words or more characters
than --max-characters; one side has more than --max-ratio times the words of the other and more than
five words more; the pair occurred before; a side is in a hold-out file (--hold-out). The number of
removed pairs per reason is written to standard error.

The files are streamed; only a hash of 16 bytes per kept pair is stored (about 100 bytes in Python's
set: 0.5 GB for the 4.5 million pairs of WMT14). Outputs are written atomically. A warning tells how
many lines had invalid UTF-8. Exit status 3: the files have different numbers of lines, or one is
compressed or in UTF-16 or UTF-32."""
import argparse
import hashlib
import itertools
import os
import pathlib
import re
import sys
import unicodedata

CONTROL = re.compile(
    r"[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u00ad"
    r"\u200b-\u200f\u202a-\u202e\u2060\ufeff\ufffe\uffff]")

#: Regular expressions of the first bytes of files that are not plain UTF-8. The mark of UTF-32
#: begins with that of UTF-16.
DECOMPRESS, CONVERT = "decompress it first", "convert it to UTF-8, for example with iconv"
OTHER_FORMATS = ((rb"\x1f\x8b", "gzip-compressed", DECOMPRESS),
                 (rb"\x28\xb5\x2f\xfd", "zstd-compressed", DECOMPRESS),
                 (rb"\xfd7zXZ\0", "xz-compressed", DECOMPRESS),
                 (rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)", "bzip2-compressed", DECOMPRESS),
                 (rb"\xff\xfe\0\0|\0\0\xfe\xff", "UTF-32", CONVERT),
                 (rb"\xff\xfe|\xfe\xff", "UTF-16", CONVERT))


def clean(line):
    """Normalizes a line."""
    text = CONTROL.sub("", line.decode("utf-8", errors="ignore"))
    return unicodedata.normalize("NFC", " ".join(text.split()))


def digest(*parts):
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).digest()


def reason_to_drop(source, target, options):
    """Why a normalized pair is removed, or None; the checks that need no state."""
    if not source or not target:
        return "empty"
    if source.casefold() == target.casefold():
        return "copied"
    words = sorted((source.count(" ") + 1, target.count(" ") + 1))
    if words[1] > options.max_words or max(len(source), len(target)) > options.max_characters:
        return "too long"
    if words[0] < options.min_words:
        return "too short"
    if words[1] > options.max_ratio * words[0] and words[1] > words[0] + 5:
        return "ratio"
    return None


class BadText(Exception):
    """Two files with different numbers of lines, or a file that is compressed or in UTF-16 or
    UTF-32."""


def refuse_other_formats(path):
    with open(path, "rb") as file:
        begin = file.read(10)
    for mark, name, remedy in OTHER_FORMATS:
        if re.match(mark, begin, re.DOTALL):
            raise BadText(f"{path}: {name}: {remedy}")


def is_damaged(line):
    """Whether a line has invalid UTF-8, which clean() removes."""
    return line.decode("utf-8", errors="ignore").encode() != line


def pairs(sources, targets, damaged):
    """Pairs of lines. damaged[file] counts damaged lines."""
    for source, target in zip(sources, targets):
        with open(source, "rb") as left, open(target, "rb") as right:
            for number, both in enumerate(itertools.zip_longest(left, right), 1):
                if None in both:
                    ended = source if both[0] is None else target
                    raise BadText(f"{source} and {target} have different numbers of lines: "
                                  f"{ended} ends before line {number}")
                for path, line in zip((source, target), both):
                    damaged[path] = damaged.get(path, 0) + is_damaged(line)
                yield both


def part_of(path):
    return path.with_name(path.name + ".part")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", metavar="SOURCE[,SOURCE...]")
    parser.add_argument("targets", metavar="TARGET[,TARGET...]")
    parser.add_argument("out_source", type=pathlib.Path)
    parser.add_argument("out_target", type=pathlib.Path)
    parser.add_argument("--min-words", type=int, default=1,
                        help="shortest side in words (default 1)")
    parser.add_argument("--max-words", type=int, default=100,
                        help="longest side in words (default 100)")
    parser.add_argument("--max-characters", type=int, default=2000,
                        help="longest side in characters (default 2000)")
    parser.add_argument("--max-ratio", type=float, default=3.0,
                        help="longest side over the other, in words (default 3)")
    parser.add_argument("--hold-out", nargs="*", default=[], metavar="FILE",
                        help="sentences to exclude from the training text")
    options = parser.parse_args(arguments)
    for name, least in (("min_words", 0), ("max_words", 1), ("max_characters", 1),
                        ("max_ratio", 1)):
        if not getattr(options, name) >= least:
            parser.error(
                f"--{name.replace('_', '-')}: {getattr(options, name)}, expected at least {least}")
    if options.min_words > options.max_words:
        parser.error(f"--min-words: {options.min_words} is more than --max-words "
                     f"{options.max_words}")
    options.sources, options.targets = options.sources.split(","), options.targets.split(",")
    if len(options.sources) != len(options.targets):
        parser.error(f"{len(options.sources)} source files and {len(options.targets)} target files")
    for path in [*options.sources, *options.targets, *options.hold_out]:
        if not os.path.isfile(path):
            parser.error(f"{path} is not a file")
    for path in (options.out_source, options.out_target):
        if not path.parent.is_dir():
            parser.error(f"{path.parent} is no directory")
    read = {os.path.realpath(path)
            for path in [*options.sources, *options.targets, *options.hold_out]}
    written = [os.path.realpath(path) for path in (options.out_source, options.out_target)]
    if written[0] == written[1]:
        parser.error(f"{options.out_source} is the output of both sides")
    for path, real in zip((options.out_source, options.out_target), written):
        if real in read:
            parser.error(f"{path} is an input and an output")
        if os.path.realpath(part_of(path)) in {*read, *written}:
            parser.error(f"{part_of(path)} is the name of {path} until it is complete")
    return options


def main():
    options = parse(sys.argv[1:])
    for path in (options.out_source, options.out_target):
        if path.exists() and not path.is_file():
            print(f"clean_corpus: {path}: is no regular file", file=sys.stderr)
            return 2
    counts = dict.fromkeys(["read", "kept", "empty", "copied", "too long", "too short", "ratio",
                            "held out", "seen before"], 0)
    held_out, seen, damaged, damaged_held_out = set(), set(), {}, {}
    parts = [part_of(path) for path in (options.out_source, options.out_target)]
    try:
        for path in [*options.hold_out, *options.sources, *options.targets]:
            refuse_other_formats(path)
        for path in options.hold_out:
            damaged_held_out[path] = 0
            with open(path, "rb") as file:
                for line in file:
                    held_out.add(digest(clean(line)))
                    damaged_held_out[path] += is_damaged(line)
        held_out.discard(digest(""))
        with open(parts[0], "w", encoding="utf-8",
                  newline="\n") as left, open(parts[1], "w", encoding="utf-8",
                                              newline="\n") as right:
            for both in pairs(options.sources, options.targets, damaged):
                source, target = map(clean, both)
                counts["read"] += 1
                why = reason_to_drop(source, target, options)
                if (not why and held_out
                    and (digest(source) in held_out or digest(target) in held_out)):
                    why = "held out"
                if not why:
                    key = digest(source, target)
                    why = "seen before" if key in seen else None
                    seen.add(key)
                if why:
                    counts[why] += 1
                    continue
                counts["kept"] += 1
                left.write(source + "\n")
                right.write(target + "\n")
            for file in (left, right):
                file.flush()
                os.fsync(file.fileno())
        for part, path in zip(parts, (options.out_source, options.out_target)):
            part.replace(path)
    except BadText as error:
        print(f"clean_corpus: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"clean_corpus: {error}", file=sys.stderr)
        return 1
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    for counted, result in ((damaged_held_out, "its sentences may not be found"),
                            (damaged, "these bytes were removed")):
        for path, lines in counted.items():
            if lines:
                print(f"clean_corpus: warning: {path}: {lines:,} lines had invalid UTF-8; {result} "
                      "(if it is in another encoding, convert it, for example with iconv)",
                      file=sys.stderr)
    print("clean_corpus: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()),
          file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
