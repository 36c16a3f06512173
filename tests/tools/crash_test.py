#!/usr/bin/env python3
"""Kills a small training at random moments, inside saves too, and starts it again each time; in the
end the weights must be those of an undisturbed run, byte for byte, and no start may have needed a
flag or found a broken checkpoint. Usage: crash_test.py [--bin BIN_DIR] [--kills 100] [--seed 1]
[--keep DIR]"""
import argparse
import hashlib
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time


def make_corpus(folder, rng, pairs=400):
    words = [("red", "rot"), ("dog", "hund"), ("house", "haus"), ("we", "wir"), ("see", "sehen"),
             ("old", "alt"), ("two", "zwei"), ("sun", "sonne")]
    with open(folder / "t.en", "w") as source, open(folder / "t.de", "w") as target:
        for _ in range(pairs):
            picked = rng.choices(words, k=rng.randint(1, 8))
            source.write(" ".join(s for s, _ in picked) + ".\n")
            target.write(" ".join(t for _, t in reversed(picked)) + ".\n")


def digest(model):
    return hashlib.sha256((model / "latest" / "model.safetensors").read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="work here and leave the files")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    folder = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="nmt-crash-"))
    folder.mkdir(parents=True, exist_ok=True)
    make_corpus(folder, rng)
    updates = max(60, 3 * args.kills)

    def command(name):
        # A checkpoint every second update: most kills fall into or beside a save.
        return [args.bin / "nmt-train", folder / "t.en", folder / "t.de", "--model", folder / name,
                "--dim-emb", "32", "--dim-rnn", "32", "--enc-depth", "1", "--dec-depth", "1",
                "--dim-vocabs", "60", "--mini-batch-words", "300", "--after", f"{updates}u",
                "--save-freq", "2u", "--valid-freq", "20u", "--valid-max-sentences", "10",
                "--early-stopping", "0", "--exponential-smoothing", "0.01", "--disp-freq", "50u"]

    begin = time.monotonic()
    subprocess.run(command("whole"), check=True, capture_output=True)
    usual = time.monotonic() - begin
    kills = starts = 0
    while True:
        starts += 1
        process = subprocess.Popen(command("killed"), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        # Mostly short lives, so that all the kills fit into one training; some long enough
        # to get on.
        life = rng.uniform(0.01, 0.35 + 2.5 * usual / args.kills) if kills < args.kills else None
        try:
            _, told = process.communicate(timeout=life)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            continue
        if process.returncode != 0:
            print(f"start {starts}, after {kills} kills, failed with status {process.returncode}:\n"
                  f"{told}")
            return 1
        if kills >= args.kills or "training is over" not in told:
            break
        # Finished before its time: the next kills disturb a fresh training.
        if digest(folder / "killed") != digest(folder / "whole"):
            break
        shutil.rmtree(folder / "killed")
    same = digest(folder / "killed") == digest(folder / "whole")
    print(f"{kills} kills in {starts} starts, {updates} updates; "
          f"weights {'identical' if same else 'DIFFER'}; {time.monotonic() - begin:.0f} s")
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
