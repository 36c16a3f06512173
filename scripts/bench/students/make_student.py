#!/usr/bin/env python3
"""Makes the models that compare_students.py measures: a student of configs/students/tiny11.yaml
whose weights are not trained (one update, so it seldom ends a sentence early), in float32 and int8,
and a shortlist.

    scripts/bench/students/make_student.py DATA WORK

DATA has multi30k, tatoeba, newstest and debian-docs, with train.en and train.de (newstest:
newstest2013); the vocabulary of 32,000 pieces is learned from all of them. The shortlist links the
pieces that stand at about the same place in the sentence pairs of newstest2013 and Tatoeba. WORK
receives model, list, and the models float32 and int8, which store this list (50 frequent pieces, 50
for each source piece). It takes a few minutes. Programs are taken from $NMT_BUILD, else build/."""
import argparse
import collections
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.system import ROOT, programs  # noqa: E402

TEXTS = ["multi30k/train", "tatoeba/train", "newstest/newstest2013", "debian-docs/train"]
LINKED = TEXTS[1:3]


def joined(data, names, out):
    for language in ("en", "de"):
        with open(out.with_suffix("." + language), "wb") as whole:
            for name in names:
                whole.write((data / f"{name}.{language}").read_bytes())


def shortlist(pairs, path, keep=100):
    """Lines "TARGET SOURCE PROBABILITY", then "TARGET NULL FREQUENCY", as nmt-translate --shortlist
    reads them."""
    linked, frequency = collections.defaultdict(collections.Counter), collections.Counter()
    for source, target in pairs:
        frequency.update(target)
        for j, piece in enumerate(target if source else []):
            at = j * len(source) // len(target)
            for near in source[max(0, at - 1):at + 2]:
                linked[near][piece] += 1
    with open(path, "w", encoding="utf-8") as out:
        for source, targets in linked.items():
            out.writelines(f"{piece} {source} {count / targets.total():.6f}\n"
                           for piece, count in targets.most_common(keep))
        out.writelines(f"{piece} NULL {count / frequency.total():.8f}\n"
                       for piece, count in frequency.most_common())


def pieces(vocabulary, path):
    done = subprocess.run([programs() / "nmt-vocab", "inspect", vocabulary, "--encode", "-i", path],
                          capture_output=True, text=True, check=True)
    return (line.split() for line in done.stdout.split("\n")[:-1])


def run(program, *words):
    subprocess.run([str(word) for word in (programs() / program, *words)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=arguments.folder, help="directory of the four texts")
    parser.add_argument("work", type=arguments.new_folder, help="output directory")
    args = parser.parse_args()
    arguments.need(parser, "data",
                   *(args.data / f"{name}.{side}" for name in TEXTS for side in ("en", "de")))
    arguments.need_programs(programs(), "nmt-train", "nmt-vocab", "nmt-convert")
    args.work.mkdir(parents=True, exist_ok=True)
    text, linked, model = args.work / "text", args.work / "linked", args.work / "model"
    joined(args.data, TEXTS, text)
    joined(args.data, LINKED, linked)
    if not (model / "best").exists():
        run("nmt-train", "--config", ROOT / "configs/students/tiny11.yaml",
            "--train-sets", text.with_suffix(".en"), text.with_suffix(".de"), "--valid-lines", "20",
            "--model", model, "--after", "1u", "--mini-batch-words", "200", "--noise", "0",
            "--valid-metrics", "cross-entropy", "--precision", "float32", "--no-reload")
    vocabulary = model / "vocab.spm"
    shortlist(zip(pieces(vocabulary, linked.with_suffix(".en")),
                  pieces(vocabulary, linked.with_suffix(".de"))), args.work / "list")
    for precision in ("float32", "int8"):
        if not (args.work / precision).exists():
            run("nmt-convert", "-m", model, "-o", args.work / precision, "--precision", precision,
                "--shortlist", args.work / "list", "50", "50", "--no-check")


if __name__ == "__main__":
    arguments.call(main)
