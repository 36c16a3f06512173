#!/usr/bin/env python3
"""Builds a lexical shortlist for nmt-translate --shortlist from alignments of parallel text by the model:
nmt-score --alignment subword links each target piece to the source piece with the most attention.

    scripts/data/make_shortlist.py MODEL SOURCE TARGET -o LIST [--bin build/bin] [--keep 200]

LIST has lines "TARGET SOURCE PROBABILITY", p(target piece | source piece), by descending probability, at
most --keep per source piece, and lines "TARGET NULL FREQUENCY" for every target piece of the text, by
descending frequency. Pairs with a blank side or longer than --max-length pieces are skipped."""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="model directory")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build/bin",
                        help="directory of the programs")
    parser.add_argument("--keep", type=int, default=200, help="maximum translations per source piece (default 200)")
    parser.add_argument("--max-length", type=int, default=200, help="maximum length in pieces (default 200)")
    parser.add_argument("--precision", default="auto", help="of nmt-score; int8 is about four times as fast (%(default)s)")
    parser.add_argument("--cpu-threads", type=int, default=0)
    return parser.parse_args()


def pieces(programs, vocabulary, path):
    """The lines of a file as lists of pieces."""
    out = subprocess.run([programs / "nmt-vocab", "inspect", vocabulary, "--encode", "-i", path], check=True, stdout=subprocess.PIPE).stdout
    lines = out.decode("utf-8").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.split(" ") if line else [] for line in lines]


def known_pieces(programs, vocabulary):
    """The allowed pieces: all except <unk>, <s> and </s>."""
    out = subprocess.run([programs / "nmt-vocab", "inspect", vocabulary, "--pieces"], check=True, stdout=subprocess.PIPE).stdout.decode("utf-8")
    return {line.split("\t")[1] for line in out.split("\n") if line} - {"<unk>", "<s>", "</s>"}


def alignments(programs, options, pairs, folder):
    """The alignment links of each pair, as (source position, target position)."""
    files = [folder / "source", folder / "target"]
    for side, path in enumerate(files):
        path.write_text("".join(" ".join(pair[side]) + "\n" for pair in pairs), encoding="utf-8")
    out = subprocess.run([programs / "nmt-score", "-m", options.model, "-t", *files, "--no-spm-encode", "--alignment", "subword", "--precision", options.precision,
                          "--cpu-threads", str(options.cpu_threads), "--max-length", str(options.max_length)],
                         check=True, stdout=subprocess.PIPE).stdout.decode("ascii")
    for line in out.splitlines():
        links = line.split(" ||| ")[1]
        yield [tuple(map(int, link.split("-"))) for link in links.split()]


def main():
    options = arguments()
    if options.keep < 1:
        sys.exit(f"make_shortlist.py: --keep is {options.keep}, expected at least 1")
    if options.output.resolve() in (options.source.resolve(), options.target.resolve()):
        sys.exit(f"make_shortlist.py: {options.output} is an input and the output")
    if not options.output.parent.is_dir():
        sys.exit(f"make_shortlist.py: {options.output.parent} is not a directory")
    joint = options.model / "vocab.spm"
    vocabularies = [joint, joint] if joint.exists() else [options.model / "src.spm", options.model / "trg.spm"]
    sides = [pieces(options.bin, vocabulary, path) for vocabulary, path in zip(vocabularies, (options.source, options.target))]
    if len(sides[0]) != len(sides[1]):
        sys.exit(f"make_shortlist.py: {options.source} has {len(sides[0])} lines, but {options.target} has {len(sides[1])}")
    pairs = [(s, t) for s, t in zip(*sides) if s and t and max(len(s), len(t)) <= options.max_length]
    if not pairs:
        sys.exit(f"make_shortlist.py: {options.source} and {options.target} have no usable pairs")
    known = [known_pieces(options.bin, vocabulary) for vocabulary in vocabularies]
    together, frequency = collections.defaultdict(collections.Counter), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for (source, target), links in zip(pairs, alignments(options.bin, options, pairs, pathlib.Path(folder)), strict=True):
            frequency.update(piece for piece in target if piece in known[1])
            for s, t in links:
                if source[s] in known[0] and target[t] in known[1]:
                    together[source[s]][target[t]] += 1
    if options.output.exists() and not options.output.is_file():
        sys.exit(f"make_shortlist.py: {options.output}: is no regular file")
    aside = options.output.with_name(options.output.name + ".part")
    try:
        with open(aside, "w", encoding="utf-8") as out:
            total = frequency.total()
            for piece, count in sorted(frequency.items(), key=lambda item: (-item[1], item[0])):
                out.write(f"{piece} NULL {count / total:.8g}\n")
            for source in sorted(together):
                counts = together[source]
                for target, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:options.keep]:
                    out.write(f"{target} {source} {count / counts.total():.6g}\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(aside, options.output)
    except OSError as error:
        sys.exit(f"make_shortlist.py: {error}")
    finally:
        aside.unlink(missing_ok=True)
    kept = sum(min(options.keep, len(counts)) for counts in together.values())
    print(f"{options.output}: {len(frequency)} target pieces, {len(together)} source pieces, {kept} translations", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"make_shortlist.py: {pathlib.Path(error.cmd[0]).name} exited with status {error.returncode}")
