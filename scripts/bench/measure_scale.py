#!/usr/bin/env python3
"""Measures how nmt-train scales with the size of the corpus: startup, memory and updates, in CPU
time of one thread. For every number of pairs, a generated corpus (scripts/data/make_toy_corpus.py)
is trained on for one update and for --updates more. The first run gives the startup (indexing
lines, holding out pairs, loading vocabularies, the dry run, one update, a checkpoint); the
difference gives the updates.

    measure_scale.py [--pairs 50000,500000,5000000] [--work FOLDER]

The model is small (deep, GRU, width 64), so that the cost of the corpus dominates. Prints a
table. nmt-train is taken from $NMT_BUILD, else build/. The largest corpus has 700 MB and is
generated once in --work."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import arguments
from common.system import ROOT, programs


def used(command):
    """CPU seconds and peak memory in MB of a child process."""
    child = subprocess.Popen([str(c) for c in command])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command[0]}: status {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def first_lines(whole, part, lines):
    part.mkdir(parents=True, exist_ok=True)
    for side in ("en", "de"):
        with open(whole / f"train.{side}",
                  "rb") as source, open(part / f"train.{side}", "wb") as target:
            for _ in range(lines):
                target.write(source.readline())


def sizes(text):
    """Numbers of pairs in ascending order."""
    return sorted({arguments.whole()(size) for size in text.split(",")})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=sizes, default="50000,500000,5000000",
                        help="comma-separated sizes (%(default)s)")
    parser.add_argument("--updates", type=arguments.whole(), default=400,
                        help="number of timed updates (%(default)s)")
    parser.add_argument("--work", type=arguments.new_folder,
                        help="folder for the corpora (default: a temporary one)")
    args = parser.parse_args()
    arguments.need_programs(programs(), "nmt-train")
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or pathlib.Path(temporary)
        whole = work / str(args.pairs[-1])
        if not (whole / "train.de").exists():
            subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py",
                            "--pairs", str(args.pairs[-1]), whole], check=True)
        vocabulary = pathlib.Path(temporary) / "vocabulary.spm"
        print("| pairs | MB of text | start-up, s | peak, MB | updates a second | us a target "
              "token |\n|---|---|---|---|---|---|")
        for size in args.pairs:
            folder = work / str(size)
            if not (folder / "train.de").exists():
                first_lines(whole, folder, size)
            model = pathlib.Path(temporary) / "model"
            command = [programs() / "nmt-train", folder / "train.en", folder / "train.de",
                       "--model", model, "--no-reload", "--type", "deep", "--unit", "gru",
                       "--dim-emb", 64, "--dim-rnn", 64, "--enc-depth", 1, "--dec-depth", 1,
                       "--tied-embeddings-all", "--mini-batch-words", 1024, "--cpu-threads", 1,
                       "--valid-freq", "1000000u", "--save-freq", "1000000u", "--disp-freq", "1u",
                       "--learn-rate", "0.001", "--lr-warmup", "100u", "--valid-lines", 500,
                       "--maxi-batch", 20, "--precision", "float32", "--quiet"]
            if not vocabulary.exists():  # one for all sizes, from the smallest corpus
                used(command + ["--dim-vocabs", 2000, "--after", "1u"])
                vocabulary.write_bytes(next(model.glob("*.spm")).read_bytes())
            command += ["--vocabs", vocabulary]
            start, _ = used(command + ["--after", "1u"])
            seconds, memory = used(command + ["--after", f"{args.updates + 1}u"])
            shown = [event
                     for event in map(json.loads, (model / "train.jsonl").read_text().splitlines())
                     if event.get("event") == "display"]
            tokens = shown[-1]["labels"] - shown[0]["labels"]
            text = sum((folder / f"train.{side}").stat().st_size for side in ("en", "de"))
            print(f"| {size:,} | {text / 1e6:.0f} | {start:.2f} | {memory:.0f} | "
                  f"{args.updates / (seconds - start):.1f} | "
                  f"{1e6 * (seconds - start) / tokens:.0f} |", flush=True)


if __name__ == "__main__":
    arguments.call(main)
