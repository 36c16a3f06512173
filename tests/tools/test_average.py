#!/usr/bin/env python3
"""nmt-average and ensembles, on tiny models trained by nmt-train. Usage: test_average.py
BIN_FOLDER.

The average is compared with the mean that Python computes in double precision from the files;
ensembles of one model with itself translate as it does, and what does not fit is one line with the
right status."""
import json
import math
import os
import pathlib
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 240


def run(program, *arguments, stdin=b""):
    return subprocess.run([str(BIN / program), *map(str, arguments)], input=stdin,
                          capture_output=True, timeout=SECONDS)


def tensors(path):
    """Names, shapes and values of a safetensors file of floats."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32"
        out[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f",
                                                   data[8 + length + begin:8 + length + end]))
    return out


class Averages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_toy_corpus.py"),
                        "--pairs", "400", "--seed", "3", str(cls.home)], check=True,
                       timeout=SECONDS)
        cls.text = b"".join((cls.home / "test.en").read_bytes().splitlines(keepends=True)[:10])
        cls.model, cls.other, cls.foreign = (cls.home / "model", cls.home / "other",
                                             cls.home / "foreign")
        cls.train(cls.model, "--unit", "lrn", "--joint-vocab=false")
        vocabularies = [str(cls.model / name) for name in ("src.spm", "trg.spm")]
        cls.train(cls.other, "--unit", "gru", "--type", "rnnsearch", "--dim-rnn", "20", "--vocabs",
                  *vocabularies)
        cls.train(cls.foreign, "--unit", "lrn", "--dim-vocabs", "250")

    @classmethod
    def train(cls, model, *more):
        trained = run("nmt-train", cls.home / "train.en", cls.home / "train.de",
                      "--valid-sets", cls.home / "valid.en", cls.home / "valid.de",
                      "--model", model, *(() if "--vocabs" in more or "--dim-vocabs" in more
                                          else ("--dim-vocabs", "200", "210")), "--dim-emb", "16",
                      *(() if "--dim-rnn" in more else ("--dim-rnn", "16")), "--enc-depth", "1",
                      "--dec-depth", "1", "--after", "40u", "--mini-batch-words", "300",
                      "--valid-freq", "20u", "--save-freq", "10u", "--valid-max-sentences", "3",
                      "--beam-size", "1", "--valid-metrics", "cross-entropy", "--keep-best", "2",
                      "--cpu-threads", "1", *more)
        assert trained.returncode == 0, trained.stderr.decode()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def refused(self, status, program, *arguments, says=()):
        result = run(program, *arguments)
        errors = [line
                  for line in result.stderr.decode().splitlines() if line.startswith("error: ")]
        self.assertEqual(result.returncode, status, result.stderr.decode())
        self.assertEqual(len(errors), 1, result.stderr.decode())
        for word in says:
            self.assertIn(str(word), errors[0])

    def expect_mean(self, output, updates):
        parts = [tensors(self.model / "checkpoints" / str(u) / "model.safetensors")
                 for u in updates]
        mean = tensors(output / "best" / "model.safetensors")
        self.assertEqual(sorted(mean), sorted(parts[0]))
        for name, (shape, values) in mean.items():
            self.assertEqual(shape, parts[0][name][0])
            for i, value in enumerate(values):
                exact = math.fsum(part[name][1][i] for part in parts) / len(parts)
                self.assertLessEqual(abs(value - exact), 6e-8 * abs(exact) + 1e-45, name)

    def test_means_of_checkpoints(self):
        for i, (arguments, updates) in enumerate(
                [(("--last", "3"), [20, 30, 40]), (("--checkpoints", "40", "10"), [10, 40]),
                 (("--best", "2"), [20, 40]), ((), [10, 20, 30, 40])]):
            output = self.home / f"average{i}"
            result = run("nmt-average", "-m", self.model, "-o", output, *arguments)
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            self.expect_mean(output, updates)
            translated = run("nmt-translate", "-m", output, "--quiet", stdin=self.text)
            self.assertEqual((translated.returncode, translated.stdout.count(b"\n")), (0, 10),
                             translated.stderr.decode())
        self.assertEqual([path.name for path in self.home.iterdir() if path.name.startswith(".")],
                         [])

    def test_an_average_of_one_is_that_one(self):
        output = self.home / "one"
        self.assertEqual(run("nmt-average", self.model, output, "--last", "1").returncode, 0)
        self.assertEqual(tensors(output / "best" / "model.safetensors"),
                         tensors(self.model / "latest" / "model.safetensors"))

    def test_the_printed_command_is_quoted_for_a_shell(self):
        output = self.home / "it's a mean"
        done = run("nmt-average", self.model, output, "--last", "1")
        command = done.stderr.decode().split("translate with: ")[1]
        self.assertEqual(shlex.split(command),
                         ["nmt-translate", "-m", str(output), "<", "INPUT", ">", "OUTPUT"])

    def test_what_cannot_be_averaged(self):
        never = self.home / "never"
        self.refused(2, "nmt-average", "-m", self.model, "-o", never, "--last", "9",
                     says=["9", "4", "keep-last"])
        self.refused(2, "nmt-average", "-m", self.model, "-o", never, "--checkpoints", "11",
                     says=["11", "10", "40"])
        self.refused(2, "nmt-average", "-m", self.model, "-o", never, "--checkpoints", "ten",
                     says=["ten"])
        self.refused(2, "nmt-average", "-m", self.model, "-o", never, "--last", "2", "--best", "2",
                     says=["last", "best"])
        self.refused(2, "nmt-average", "-m", self.home / "missing", "-o", never, says=["missing"])
        self.refused(2, "nmt-average", "-m", self.model, says=["-o"])
        self.refused(2, "nmt-average", "-m", self.model, "-o", self.other, says=["other", "exists"])
        self.refused(2, "nmt-average", "-m", self.model, "-o", self.model / "checkpoints/mean",
                     says=["is a file of the model"])
        start = self.home / "start"
        shutil.copytree(self.model, start, symlinks=True)
        for updates in (10, 20, 30, 40):
            shutil.rmtree(start / f"checkpoints/{updates}")
        for choice in (["--last", "1"], ["--best", "1"], []):
            self.refused(2, "nmt-average", "-m", start, "-o", never, *choice,
                         says=[f"{start}: has no checkpoint after update 0; train further first"])
        mixed = self.home / "mixed"
        shutil.copytree(self.model, mixed, symlinks=True)
        shutil.rmtree(mixed / "checkpoints/30")
        shutil.copytree(self.other / "checkpoints/30", mixed / "checkpoints/30")
        self.refused(3, "nmt-average", "-m", mixed, "-o", never,
                     says=["checkpoints/30", "layer_0", "cannot be averaged"])
        damaged = self.home / "damaged"
        shutil.copytree(self.model, damaged, symlinks=True)
        weights = damaged / "checkpoints/30/model.safetensors"
        if os.geteuid() == 0:  # root reads all folders
            closed = self.home / "closed"
            shutil.copytree(self.model, closed, symlinks=True)
            (closed / "checkpoints").chmod(0)
            self.home.chmod(0o755)
            as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
            reaches = subprocess.run([*as_nobody, "sh", "-c", '"$0" --version && test -x "$1"',
                                      str(BIN / "nmt-average"), str(closed)], cwd="/",
                                     capture_output=True)
            done = subprocess.run([*as_nobody, str(BIN / "nmt-average"), "-m", str(closed),
                                   "-o", "x"], cwd="/", capture_output=True, text=True)
            (closed / "checkpoints").chmod(0o755)
            if reaches.returncode == 0:  # others may reach the programs and the folder
                self.assertIn("closed/checkpoints: Permission denied", done.stderr)
        weights.write_bytes(weights.read_bytes()[:-4])
        self.refused(3, "nmt-average", "-m", damaged, "-o", never, says=["30/model.safetensors"])
        self.assertFalse(never.exists())

    def test_an_average_is_not_trained_further(self):
        mean = self.home / "end"
        self.assertEqual(run("nmt-average", "-m", self.model, "-o", mean, "--last", "2").returncode,
                         0)
        self.refused(2, "nmt-train", self.home / "train.en", self.home / "train.de", "-m", mean,
                     says=["made by nmt-average"])

    def test_a_converted_model_is_not_trained_further(self):
        converted = self.home / "converted"
        self.assertEqual(run("nmt-convert", "-m", self.model, "-o", converted,
                             "--precision", "float32").returncode, 0)
        self.refused(2, "nmt-train", self.home / "train.en", self.home / "train.de",
                     "-m", converted, says=["made by nmt-convert"])

    def test_ensembles(self):
        translate = lambda *models: run("nmt-translate", "--quiet", "--n-best", *models,
                                        stdin=self.text)
        alone, twice = translate("-m", self.model), translate("-m", self.model, self.model)
        self.assertEqual(alone.returncode, 0, alone.stderr.decode())
        self.assertEqual(twice.stdout, alone.stdout, twice.stderr.decode())
        mixed = translate("-m", self.model, self.other)
        self.assertEqual(mixed.returncode, 0, mixed.stderr.decode())
        self.assertNotEqual(mixed.stdout, alone.stdout)
        for arguments in (("--mini-batch", "1"), ("--mini-batch", "3", "--maxi-batch-sort", "none"),
                          ("--cpu-threads", "2")):
            self.assertEqual(translate("-m", self.model, self.other, *arguments).stdout,
                             mixed.stdout)
        weighted = translate("-m", self.model, self.other, "--weights", "1", "1e-9")
        self.assertEqual([line.split(b" ||| ")[1] for line in weighted.stdout.splitlines()],
                         [line.split(b" ||| ")[1] for line in alone.stdout.splitlines()])
        self.assertEqual(translate("-m", self.model, self.other,
                                   "--ensemble", "probabilities").returncode, 0)
        aligned = run("nmt-translate", "--quiet", "-m", self.model, self.other, "--alignment",
                      stdin=self.text)
        self.assertEqual(aligned.returncode, 0, aligned.stderr.decode())

    def test_scores_of_an_ensemble(self):
        pair = (self.home / "test.en", self.home / "test.de")
        score = lambda *arguments: [float(x)
                                    for x in run("nmt-score", "--quiet", *arguments).stdout.split()]
        a, b, both = (score("-m", *models, *pair)
                      for models in ((self.model,), (self.other,), (self.model, self.other)))
        self.assertGreater(len(both), 10)
        # log probabilities are averaged token by token
        for x, y, mean in zip(a, b, both, strict=True):
            self.assertAlmostEqual(mean, (x + y) / 2, delta=2e-5 * abs(mean))
        for x, y, mean in zip(a, b, score("-m", self.model, self.other, "--weights", "3", "1", "-t",
                                          *pair), strict=True):
            self.assertAlmostEqual(mean, (3 * x + y) / 4, delta=2e-5 * abs(mean))

    def test_only_an_option_that_takes_several_models_says_so(self):
        file = self.home / "test.en"
        message = f"error: model: {file} is a file, not a model directory"
        done = run("nmt-translate", "-m", self.model, file)
        self.assertIn(f"{message} (an option that takes several names takes all up to the next",
                      done.stderr.decode())
        for program, *more in (("nmt-average", "-o", self.home / "x"), ("nmt-info",),
                               ("nmt-report", "-o", self.home / "x"), ("nmt-explain",),
                               ("nmt-convert", "-o", self.home / "x")):
            done = run(program, "-m", file, *more)
            self.assertEqual((done.returncode, done.stderr.decode().splitlines()[-1]),
                             (2, message), program)

    def test_what_is_no_ensemble(self):
        self.refused(2, "nmt-translate", "-m", self.model, self.foreign,
                     says=["target vocabularies", "model", "foreign"])
        self.refused(2, "nmt-score", "-m", self.model, self.foreign, self.home / "test.en",
                     self.home / "test.de", says=["target vocabularies"])
        self.refused(2, "nmt-translate", "-m", self.model, self.other, "--weights", "1",
                     says=["weights", "1", "2"])
        self.refused(2, "nmt-translate", "-m", self.model, self.other, "--ensemble", "product",
                     says=["product"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
