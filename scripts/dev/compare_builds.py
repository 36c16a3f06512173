#!/usr/bin/env python3
"""Compares two builds: the same trainings and translations, bit for bit, and their speed.

    compare_builds.py OLD_BIN NEW_BIN [--level x86-64-v3] [--updates 12] [--rounds 3] [--no-speed]

Trains every architecture and every unit for some updates with both builds, with one thread and own
products on one instruction set, and compares the weights and the translations. Then times training
and translating of a larger model, the builds in turn, and prints the ratio of the medians (new over
old; above 1 the new build is slower) with the spread of the single runs. Exit status 1 where
anything differs; times never fail."""
import argparse
import filecmp
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))
from common import arguments as checks  # noqa: E402

LOADER = "/lib64/ld-linux-x86-64.so.2"
SMALL = ["--dim-vocabs", "200", "--dim-emb", "24", "--dim-rnn", "24", "--mini-batch-words", "300",
         "--valid-metrics", "cross-entropy", "--early-stopping", "0", "--cpu-threads", "1",
         "--products", "own", "--precision", "float32"]
ARCHITECTURES = {
    "deep": ["--type", "deep", "--enc-depth", "2", "--dec-depth", "2"],
    "deep-context-aware": ["--type", "deep", "--context-aware", "--enc-depth", "2",
                           "--dec-depth", "3"],
    "deep-first-layer": ["--type", "deep", "--attention-query", "first-layer", "--dec-depth", "2"],
    "rnnsearch": ["--type", "rnnsearch"],
    "rnnsearch-context-aware": ["--type", "rnnsearch", "--context-aware", "--heads", "2"],
    "gnmt": ["--type", "gnmt", "--enc-depth", "4", "--dec-depth", "3"],
    "seq2seq": ["--type", "seq2seq", "--enc-depth", "2", "--dec-depth", "2", "--attention", "dot"],
    "seq2seq-no-attention": ["--type", "seq2seq", "--attention", "none"],
    "groups": ["--type", "deep", "--groups", "2", "--rearrange"],
    "plain": ["--type", "deep", "--no-layer-normalization", "--bias"],
    "optimizers": ["--optimizer", "adadelta", "--exponential-smoothing", "0.01",
                   "--dropout-variational", "--optimizer-delay", "2"],
}
LARGE = ["--type", "deep", "--unit", "lrn", "--dim-vocabs", "2000", "--dim-emb", "256", "--dim-rnn",
         "256", "--enc-depth", "2", "--dec-depth", "2", "--mini-batch-words", "2000",
         "--valid-metrics", "cross-entropy", "--valid-max-sentences", "10", "--early-stopping", "0",
         "--precision", "float32"]


class Build:
    def __init__(self, folder, level):
        self.folder, self.level = pathlib.Path(folder).resolve(), level

    def run(self, program, *arguments, stdin=b"", level=True):
        prefix = [LOADER, "--glibc-hwcaps-mask", self.level] if level and self.level else []
        command = [*prefix, str(self.folder / program), *map(str, arguments)]
        done = subprocess.run(command, input=stdin, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr.decode()}")
        return done

    def train(self, corpus, model, *options):
        done = self.run("nmt-train", corpus / "train.en", corpus / "train.de", "--valid-sets",
                        corpus / "valid.en", corpus / "valid.de", "--model", model, *options)
        found = re.search(r"x86-64-v\d", done.stderr.decode())
        return found[0] if found else "?"


def make_corpus(folder, pairs):
    subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", str(pairs),
                    "--valid", "40", "--test", "100", "--seed", "11", folder], check=True)
    return folder


def same_results(builds, corpus, scratch, updates):
    """Names of what differs."""
    units = re.search(r"^units: (.*)", builds[0].run("nmt-train", "--build-info").stdout.decode(),
                      re.M)[1].split()
    cases = {**ARCHITECTURES, **{f"unit-{unit}": ["--unit", unit] for unit in units}}
    text = (corpus / "valid.en").read_bytes()
    differing = []
    for name, options in cases.items():
        every = [o for key in ("--valid-freq", "--save-freq", "--after")
                 for o in (key, f"{updates}u")]
        models = [scratch / f"{name}.{side}" for side in ("old", "new")]
        levels = [build.train(corpus, model, *SMALL, *options, *every)
                  for build, model in zip(builds, models)]
        if levels[0] != levels[1]:
            sys.exit(f"the builds ran on {levels[0]} and {levels[1]}: choose --level")
        weights = [model / "latest" / "model.safetensors" for model in models]
        outputs = [build.run("nmt-translate", "--model", model, "--quiet", "--cpu-threads", 1,
                             "--max-length-factor", 1, stdin=text).stdout
                   for build, model in zip(builds, models)]
        crossed = builds[1].run("nmt-translate", "--model", models[0], "--quiet", "--cpu-threads",
                                1, "--max-length-factor", 1, stdin=text).stdout
        same = {"weights": filecmp.cmp(*weights, shallow=False),
                "translations": outputs[0] == outputs[1],
                "old model, new build": outputs[0] == crossed}
        bad = [what for what, equal in same.items() if not equal]
        print(f"{name:26} {levels[0]}  "
              f"{'same bits' if not bad else 'DIFFERENT: ' + ', '.join(bad)}", flush=True)
        differing += [f"{name}: {what}" for what in bad]
    return differing


def time_both(title, rounds, runs):
    """Runs both commands in turn and prints the ratio of their median seconds."""
    seconds = ([], [])
    for turn in range(rounds + 1):
        order = (0, 1) if turn % 2 else (1, 0)
        for side in order:
            begin = time.monotonic()
            runs[side](turn)
            if turn > 0:  # the first turn warms caches
                seconds[side].append(time.monotonic() - begin)
    old, new = map(statistics.median, seconds)
    spread = [f"{min(s):.2f} to {max(s):.2f} s" for s in seconds]
    print(f"{title}: old {old:.2f} s ({spread[0]}), new {new:.2f} s ({spread[1]}), "
          f"ratio {new / old:.3f}", flush=True)


def speed(builds, corpus, scratch, rounds):
    """Training of 20 updates and translating 140 lines, with the processor's own kernels."""
    def train(side):
        return lambda turn: builds[side].train(
            corpus, scratch / f"speed.{side}.{turn}", *LARGE, "--valid-freq", "20u", "--save-freq",
            "20u", "--after", "20u")
    time_both("training, 20 updates", rounds, [train(0), train(1)])
    text = (corpus / "valid.en").read_bytes() + (corpus / "test.en").read_bytes()
    model = scratch / "speed.0.0"

    def translate(side):
        return lambda turn: builds[side].run("nmt-translate", "--model", model, "--quiet",
                                             "--max-length-factor", 2, stdin=text * 3)
    time_both("translating, 420 lines, beam 4", rounds, [translate(0), translate(1)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("old", type=checks.folder, help="folder of the programs to compare with")
    parser.add_argument("new", type=checks.folder, help="folder of the programs to check")
    parser.add_argument("--level", default="x86-64-v3",
                        help="instruction set that the loader takes; empty: the best")
    parser.add_argument("--updates", type=checks.whole(), default=12)
    parser.add_argument("--rounds", type=checks.whole(), default=3, help="timed runs of each build")
    parser.add_argument("--no-speed", action="store_true")
    arguments = parser.parse_args()
    for folder in (arguments.old, arguments.new):
        checks.need_programs(folder, "nmt-train", "nmt-translate")
    builds = [Build(folder, arguments.level) for folder in (arguments.old, arguments.new)]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        small, large = (scratch / name for name in ("small", "large"))
        differing = same_results(builds, make_corpus(small, 200), scratch, arguments.updates)
        if not arguments.no_speed:
            speed([Build(folder, "") for folder in (arguments.old, arguments.new)],
                  make_corpus(large, 3000), scratch, arguments.rounds)
    if differing:
        sys.exit("different:\n  " + "\n  ".join(differing))


if __name__ == "__main__":
    checks.call(main)
