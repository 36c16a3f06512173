#!/usr/bin/env python3
"""Builds a lexical shortlist for nmt-translate --shortlist from alignments of parallel text
by the model: nmt-score --alignment subword links each target piece to the source piece with
the most attention.

    scripts/data/make_shortlist.py MODEL SOURCE TARGET -o LIST [--bin build/bin] [--keep 200]

LIST has lines "TARGET SOURCE PROBABILITY", p(target piece | source piece), by descending
probability, at most --keep per source piece, and lines "TARGET NULL FREQUENCY" for every target
piece of the text, by descending frequency. Pairs with a blank side or longer than --max-length
pieces are skipped. A pair that occurs several times counts as often.

A document model reads each source sentence with its context, together at most --max-length pieces:
SOURCE and TARGET must be in the order of the documents, with an empty line after each."""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="model directory")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2] / "build/bin",
                        help="directory of the programs")
    parser.add_argument("--keep", type=int, default=200,
                        help="maximum translations per source piece (default 200)")
    parser.add_argument("--max-length", type=int, default=200,
                        help="maximum length in pieces (default 200)")
    parser.add_argument("--precision", default="auto",
                        help="of nmt-score; int8 is about four times as fast (%(default)s)")
    parser.add_argument("--cpu-threads", type=int, default=0)
    options = parser.parse_args()
    for name, least in (("keep", 1), ("max_length", 1), ("cpu_threads", 0)):
        if getattr(options, name) < least:
            parser.error(
                f"--{name.replace('_', '-')}: {getattr(options, name)}, expected at least {least}")
    for path in (options.source, options.target):
        if not path.is_file():
            parser.error(f"{path}: is no file")
    if not options.model.is_dir():
        parser.error(f"{options.model}: is no model directory")
    for program in ("nmt-vocab", "nmt-score"):
        if not (options.bin / program).is_file():
            parser.error(f"{options.bin / program}: is missing; build the programs, or give --bin")
    if not options.output.parent.is_dir():
        parser.error(f"{options.output.parent} is no directory")
    if options.output.exists() and not options.output.is_file():
        parser.error(f"{options.output}: is no regular file")
    if options.output.resolve() in (options.source.resolve(), options.target.resolve()):
        parser.error(f"{options.output} is an input and the output")
    return options


def pieces(programs, vocabulary, path):
    """The lines of a file as lists of pieces."""
    out = subprocess.run([programs / "nmt-vocab", "inspect", vocabulary, "--encode", "-i", path],
                         check=True, stdout=subprocess.PIPE).stdout
    lines = out.decode("utf-8").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.split(" ") if line else [] for line in lines]


def known_pieces(programs, vocabulary):
    """The allowed pieces: all except <unk>, <s> and </s>."""
    out = subprocess.run([programs / "nmt-vocab", "inspect", vocabulary, "--pieces"], check=True,
                         stdout=subprocess.PIPE).stdout.decode("utf-8")
    return {line.split("\t")[1] for line in out.split("\n") if line} - {"<unk>", "<s>", "</s>"}


def alignments(programs, options, pairs, folder):
    """The alignment links of each pair, as (source position, target position). Skipped pairs keep
    their source, which a document model reads as context of the pairs after it; one that is too
    long ends the context, as in training."""
    files = [folder / "source", folder / "target"]
    for side, path in enumerate(files):
        with open(path, "w", encoding="utf-8") as file:
            for pair in pairs:
                kept = (len(pair[0]) <= options.max_length if side == 0
                        else is_usable(pair, options.max_length))
                file.write((" ".join(pair[side]) if kept else "") + "\n")
    out = subprocess.run(
        [programs / "nmt-score", "-m", options.model, "-t", *files, "--no-spm-encode",
         "--alignment", "subword", "--precision", options.precision,
         "--cpu-threads", str(options.cpu_threads), "--max-length", str(options.max_length)],
        check=True, stdout=subprocess.PIPE).stdout.decode("ascii")
    for line in out.splitlines():
        links = line.split(" ||| ")[1]
        yield [tuple(map(int, link.split("-"))) for link in links.split()]


def is_usable(pair, longest):
    return all(0 < len(side) <= longest for side in pair)


def main():
    options = arguments()
    joint = options.model / "vocab.spm"
    vocabularies = ([joint, joint] if joint.exists()
                    else [options.model / "src.spm", options.model / "trg.spm"])
    sides = [pieces(options.bin, vocabulary, path)
             for vocabulary, path in zip(vocabularies, (options.source, options.target))]
    if len(sides[0]) != len(sides[1]):
        sys.exit(f"make_shortlist.py: {options.source} has {len(sides[0])} lines, "
                 f"but {options.target} has {len(sides[1])}")
    pairs = list(zip(*sides))
    if not any(is_usable(pair, options.max_length) for pair in pairs):
        sys.exit(f"make_shortlist.py: {options.source} and {options.target} have no usable pairs")
    known = [known_pieces(options.bin, vocabulary) for vocabulary in vocabularies]
    known[0].discard("NULL")  # in the list, NULL is no source piece
    together, frequency = collections.defaultdict(collections.Counter), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for (source, target), links in zip(pairs, alignments(options.bin, options, pairs,
                                                             pathlib.Path(folder)), strict=True):
            if not is_usable((source, target), options.max_length):
                continue
            frequency.update(piece for piece in target if piece in known[1])
            for s, t in links:
                if source[s] in known[0] and target[t] in known[1]:
                    together[source[s]][target[t]] += 1
    aside = options.output.with_name(options.output.name + ".part")
    try:
        with open(aside, "w", encoding="utf-8") as out:
            total = frequency.total()
            for piece, count in sorted(frequency.items(), key=lambda item: (-item[1], item[0])):
                out.write(f"{piece} NULL {count / total:.8g}\n")
            for source in sorted(together):
                counts = together[source]
                for target, count in sorted(counts.items(),
                                            key=lambda item: (-item[1], item[0]))[:options.keep]:
                    out.write(f"{target} {source} {count / counts.total():.6g}\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(aside, options.output)
    except OSError as error:
        sys.exit(f"make_shortlist.py: {error}")
    finally:
        aside.unlink(missing_ok=True)
    kept = sum(min(options.keep, len(counts)) for counts in together.values())
    print(f"{options.output}: {len(frequency)} target pieces, {len(together)} source pieces, "
          f"{kept} translations", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        if error.returncode > 0:  # it has printed its error
            sys.exit(error.returncode)
        sys.exit(f"make_shortlist.py: {pathlib.Path(error.cmd[0]).name} was ended by signal "
                 f"{-error.returncode}")
    except OSError as error:  # a full temporary folder
        sys.exit(f"make_shortlist.py: {error}")
