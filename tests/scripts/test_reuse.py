#!/usr/bin/env python3
"""Scripts of scripts/bench that keep finished trainings use them again only with the same options
and texts. Usage: test_reuse.py BIN_DIR"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "scripts/bench"
sys.path[:0] = [str(BENCH), str(BENCH / "rivals")]
import compare_transformer  # noqa: E402
from common import inputs  # noqa: E402

# Stands for nmt-train: a model directory, a log that is over, and a count of calls.
TRAIN = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
while [ "$1" != --model ]; do shift; done
mkdir -p "$2"
echo "training is over at update 1" >&2
"""


class Reuse(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="nmt-reuse-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.bin = self.folder / "bin"
        self.program("nmt-train", TRAIN)

    def program(self, name, text):
        self.bin.mkdir(exist_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def calls(self):
        return len((self.bin / "calls").read_text().splitlines())

    def texts(self, folder, *names, line="a b\n", lines=10):
        (self.folder / folder).mkdir(exist_ok=True)
        for name in names:
            (self.folder / folder / name).write_text(line * lines)

    def run_it(self, script, *arguments, programs=None, status=0):
        done = subprocess.run([sys.executable, BENCH / script, *map(str, arguments)],
                              capture_output=True, text=True, timeout=120,
                              env={**os.environ, "NMT_BUILD": str(programs or self.folder)})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def refused(self, what, script, *arguments, **options):
        said = self.run_it(script, *arguments, status=1, **options)
        self.assertIn(f"was computed with other values or files of {what}; take another --work",
                      said)
        self.assertEqual(len(said.splitlines()), 1, said)

    def test_commands(self):
        self.texts(".", "x")
        words = ["one", "--a=2", "--b", self.folder / "x", "-3", "--c", "--a", "4", "--model", "m"]
        self.assertEqual(inputs.of_command(words, without=["--model"]),
                         {"the training text": ["one"], "--a": ["2", "4"],
                          "--b": [inputs.digest(self.folder / "x"), "-3"], "--c": []})

    def test_taggers(self):
        self.texts(".", "train", "valid", "other")
        self.program("nmt-tag", "#!/bin/sh\necho 'accuracy 50.0 %'\n")

        def arguments(train, *options):
            return ["quality/compare_taggers.py", self.folder / train, self.folder / "valid",
                    "--units", "gru", "--networks", "basic", "--programs", self.bin,
                    "--work", self.folder / "work", "--", *options]

        self.run_it(*arguments("train", "--dropout", "0.1"))
        self.assertEqual(self.run_it(*arguments("train", "--dropout", "0.1")), "")
        self.assertEqual(self.run_it(*arguments("other", "--dropout", "0.1")), "")  # the same text
        self.assertEqual(self.calls(), 1)
        self.refused("--dropout", *arguments("train", "--dropout", "0.2"))
        self.texts(".", "other", line="c d\n")
        self.refused("the training text", *arguments("other", "--dropout", "0.1"))
        (self.folder / "work/basic-gru-1.json").unlink()  # as of older versions
        self.assertIn("warning: ", self.run_it(*arguments("train", "--dropout", "0.2")))
        self.assertEqual(self.calls(), 1)

    def test_memory_length(self):
        common = ["units/memory_length.py", "--work", self.folder / "work", "gru"]

        def arguments(distance=3, width=8, updates=2):
            return [*common, "--distance", distance, "--width", width, "--updates", updates]

        self.run_it(*arguments(), programs=BIN.parent)
        self.assertEqual(self.run_it(*arguments(), programs=BIN.parent), "")
        self.refused("--dim-rnn", *arguments(width=16), programs=BIN.parent)
        self.refused("--after", *arguments(updates=3), programs=BIN.parent)
        self.refused("the training text, --valid-sets, --max-length", *arguments(distance=4),
                     programs=BIN.parent)

    def test_language_model_uses(self):
        self.texts("data")
        self.texts("data/multi30k", "train.en", "train.de", "val.en", "val.de", "test2016.en",
                   "test2016.de")
        self.program("nmt-bleu", "#!/bin/sh\necho '{\"score\": 1}'\n")
        self.program("nmt-translate", "#!/bin/sh\n")

        def arguments(updates=3, lm_updates=3):
            return ["quality/language_model_uses.py", "fusion", "--data", self.folder / "data",
                    "--work", self.folder / "work", "--programs", self.bin,
                    "--updates", updates, "--lm-updates", lm_updates]

        self.run_it(*arguments())
        self.run_it(*arguments())
        self.assertEqual(self.calls(), 2)
        self.refused("--after, --valid-freq", *arguments(updates=4))
        self.refused("--after, --valid-freq", *arguments(lm_updates=4))
        self.texts("data/multi30k", "val.de", line="c\n")
        self.refused("--valid-sets", *arguments())

    def test_training_speed_of_the_transformer_table(self):
        self.assertEqual(compare_transformer.training_speed(self.folder), 0)
        lines = [{"event": "display", "labels": 300, "target_tokens_per_second": 100},
                 {"event": "validation", "labels": 300},
                 {"event": "display", "labels": 700, "target_tokens_per_second": 400}]
        (self.folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assertEqual(compare_transformer.training_speed(self.folder), 700 / (3 + 1))

    def test_transformer(self):
        for data in ("data", "other"):
            self.texts(data, "train.en", "train.de", "val.en", "val.de", line=data + "\n")
        self.program("nmt-convert", "#!/bin/sh\n")
        os.environ["NMT_BUILD"] = str(self.folder)
        self.addCleanup(os.environ.pop, "NMT_BUILD")
        self.texts(".", "x.yaml")
        self.texts("work")

        def train(data):
            args = argparse.Namespace(work=self.folder / "work", data=self.folder / data,
                                      minutes=1, threads=1)
            return compare_transformer.trained_model(args, "x", self.folder / "x.yaml")

        train("data")
        train("data")
        self.assertEqual(self.calls(), 1)
        for call in (lambda: train("other"),
                     lambda: compare_transformer.train_vocabulary(argparse.Namespace(
                             work=self.folder / "work", data=self.folder / "other", pieces=8))):
            (self.folder / "work/pieces.model").touch()
            inputs.keep(self.folder / "work/pieces.json", {"pieces": 8, "data": ["a", "b"]})
            with self.assertRaises(SystemExit) as refused:
                call()
            self.assertIn("was made with other settings (data): take another --work",
                          refused.exception.code)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
