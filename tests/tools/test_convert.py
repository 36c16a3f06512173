#!/usr/bin/env python3
"""nmt-convert, on a tiny model trained by nmt-train. Usage: test_convert.py BIN_FOLDER.

The rounded numbers are compared with their definition in Python's double precision; a model
in which int8 drowns all weights of some matrices beside one outlier each must be refused,
with nothing written."""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 240


def run(program, *arguments, stdin=b""):
    return subprocess.run([str(BIN / program), *map(str, arguments)], input=stdin,
                          capture_output=True, timeout=SECONDS)


def model_file(directory):
    return next(directory.glob("best/model.safetensors"))


def tensors(path):
    """Name -> [dtype, shape, list of numbers]; a BF16 is its sixteen bits."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            size, code = {"F32": (4, "f"), "BF16": (2, "H"), "I8": (1, "b")}[entry["dtype"]]
            out[name] = [entry["dtype"], entry["shape"],
                         list(struct.unpack(f"<{(end - begin) // size}{code}",
                                            data[8 + length + begin:8 + length + end]))]
    return out


def write_model(directory, contents):
    """Puts F32 tensors in the place of those of the best checkpoint, with a manifest that fits."""
    header, data = {}, b""
    for name, (_, shape, values) in contents.items():
        piece = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + data
    path = model_file(directory)
    path.write_bytes(data)
    manifest = path.with_name("manifest.json")
    record = json.loads(manifest.read_text())
    record["files"]["model.safetensors"] = {"bytes": len(data), "crc32": zlib.crc32(data)}
    manifest.write_text(json.dumps(record))


def from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


class Conversions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_toy_corpus.py"),
                        "--pairs", "400", "--seed", "3", str(cls.home)], check=True,
                       timeout=SECONDS)
        cls.text = b"".join((cls.home / "test.en").read_bytes().splitlines(keepends=True)[:30])
        (cls.home / "check.en").write_bytes(cls.text)
        cls.model, cls.int8 = cls.home / "model", cls.home / "int8"
        trained = run("nmt-train", cls.home / "train.en", cls.home / "train.de",
                      "--valid-sets", cls.home / "valid.en", cls.home / "valid.de",
                      "--model", cls.model, "--unit", "gru", "--dim-vocabs", "200",
                      "--dim-emb", "32", "--dim-rnn", "32", "--enc-depth", "1", "--dec-depth", "1",
                      "--after", "150u", "--mini-batch-words", "400", "--valid-freq", "150u",
                      "--save-freq", "150u", "--valid-max-sentences", "20", "--beam-size", "1",
                      "--valid-metrics", "bleu", "--keep-last", "1", "--learn-rate", "0.003",
                      "--cpu-threads", "1", "--no-tied-embeddings-all")
        assert trained.returncode == 0, trained.stderr.decode()
        # What float32 says is the reference: BLEU 100 before.
        (cls.home / "check.de").write_bytes(cls.translate(cls.model))
        cls.check = ("--check", cls.home / "check.en", cls.home / "check.de")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def translate(cls, *arguments):
        result = run("nmt-translate", "--quiet", "-m", *arguments, stdin=cls.text)
        assert result.returncode == 0, result.stderr.decode()
        return result.stdout

    def convert(self, *arguments):
        result = run("nmt-convert", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result.stderr.decode()

    def refused(self, status, program, *arguments, says=()):
        result = run(program, *arguments)
        message = result.stderr.decode()
        errors = [line for line in message.splitlines() if line.startswith("error: ")]
        self.assertEqual(result.returncode, status, message)
        self.assertEqual(len(errors), 1, message)
        for word in says:
            self.assertIn(str(word), errors[0])

    def test_numbers_are_those_of_the_definition(self):
        exact = tensors(model_file(self.model))
        for precision, dtype in (("int8", "I8"), ("bfloat16", "BF16")):
            out = self.home / f"numbers in {precision}"
            report = self.convert(self.model, out, "--precision", precision, "--no-check")
            self.assertIn(f"translate with: nmt-translate -m '{out}' < INPUT > OUTPUT", report)
            stored = tensors(model_file(out))
            rounded = [name for name, tensor in stored.items() if tensor[0] == dtype]
            self.assertGreater(len(rounded), 8)
            self.assertIn("decoder.embedding", rounded)
            self.assertNotIn("decoder.output_bias", rounded)
            self.assertEqual({name for name in stored if not name.endswith(".scales")}, set(exact))
            for name, (_, shape, values) in exact.items():
                self.assertEqual(stored[name][1], shape)
                if name not in rounded:
                    self.assertEqual(stored[name], exact[name])
                elif precision == "bfloat16":
                    for value, bits in zip(values, stored[name][2]):
                        near = abs(from_bf16(bits) - value)
                        self.assertTrue(near <= abs(from_bf16(bits ^ 1) - value)
                                        and near <= abs(value) * 2 ** -8, (name, value, bits))
                else:
                    rows, columns = shape
                    table = "embedding" in name
                    scales = stored[name + ".scales"][2]
                    self.assertEqual(len(scales), rows if table else columns)
                    for at, value in enumerate(values):
                        scale = scales[at // columns if table else at % columns]
                        self.assertLessEqual(abs(stored[name][2][at] * scale - value),
                                             0.5001 * scale, name)
                    for column, scale in enumerate(scales):
                        most = max(map(abs, values[column * columns:(column + 1) * columns] if table
                                            else values[column::columns]))
                        self.assertAlmostEqual(scale * 127, most, delta=1e-6 * most)

    def test_translates_as_the_same_precision_at_load(self):
        for precision, share in (("int8", 0.36), ("bfloat16", 0.56)):
            out = self.home / f"same-{precision}"
            said = self.convert("-m", self.model, "-o", out, "--precision", precision, *self.check,
                                "--tolerance", 60)
            self.assertIn("BLEU 100.00 in float32", said)
            expected = self.translate(self.model, "--precision", precision)
            self.assertEqual(self.translate(out), expected)
            for batch, threads in ((1, 1), (7, 2)):
                self.assertEqual(self.translate(out, "--mini-batch", batch,
                                                "--cpu-threads", threads), expected)
            self.assertLess(model_file(out).stat().st_size,
                            share * model_file(self.model).stat().st_size)
            wide = self.home / f"wide-{precision}"
            self.convert(out, wide, "--precision", "float32")
            self.assertEqual(self.translate(wide), self.translate(out, "--precision", "float32"))
            told = json.loads(run("nmt-info", "--json", out).stdout)
            self.assertEqual(told["precision"], precision)
            score = run("nmt-score", "--quiet", "-m", out, "-t", self.home / "check.en",
                        self.home / "check.de")
            self.assertEqual(score.returncode, 0, score.stderr.decode())
            self.assertEqual(score.stdout,
                             run("nmt-score", "--quiet", "-m", self.model, "--precision", precision,
                                 "-t", self.home / "check.en", self.home / "check.de").stdout)
            # An ensemble, each as it is, by any number of workers.
            together = self.translate(self.model, out, "--workers", "1")
            self.assertEqual(self.translate(self.model, out, "--workers", "3", "--mini-batch", "2"),
                             together)
            self.refused(2, "nmt-average", out, self.home / "nothing", says=(precision, "float32"))
            self.refused(2, "nmt-convert", out, self.home / "nothing", says=(precision, out))
            self.refused(2, "nmt-train", self.home / "train.en", self.home / "train.de",
                         "--model", out, says=(precision,))
        self.refused(2, "nmt-convert", self.model, self.home / "same-int8", says=("exists", ))

    def test_a_model_that_int8_harms_is_refused(self):
        planted = self.home / "planted"
        subprocess.run(["cp", "-a", str(self.model), str(planted)], check=True)
        contents = tensors(model_file(planted))
        # The first channel of all embeddings is 0, and a weight of 10,000 reads it: float32 does
        # not see it, int8 sees nothing else.
        width = contents["decoder.embedding"][1][1]
        for name in contents:
            if name.endswith("embedding"):
                contents[name][2][::width] = [0.0] * len(contents[name][2][::width])
        outliers = 0
        for name, (_, shape, values) in contents.items():
            if name.endswith("input_projection") and shape[0] == width and "higher" not in name:
                values[:shape[1]] = [1e4] * shape[1]
                outliers += 1
        self.assertGreater(outliers, 1)
        write_model(planted, contents)
        (self.home / "planted.de").write_bytes(self.translate(planted))
        check = ("--check", self.home / "check.en", self.home / "planted.de")
        before = sorted(path.name for path in self.home.iterdir())
        self.refused(1, "nmt-convert", planted, self.home / "harmed", *check,
                     says=("int8", "BLEU 100.00 in float32", "30 sentences", "0.5"))
        self.refused(1, "nmt-convert", planted, self.home / "harmed", *check,
                     "--check-sentences", 5, says=("over 30 sentences", "nothing was written"))
        self.assertEqual(sorted(path.name for path in self.home.iterdir()), before)
        piped = subprocess.run(['"$0" -m "$1" -o "$2" --check <(cat "$3") <(cat "$4") '
                                "--check-sentences 5", BIN / "nmt-convert", planted,
                                self.home / "harmed", *check[1:]],
                               executable="/bin/bash", shell=True, capture_output=True, text=True)
        self.assertEqual(piped.returncode, 1, piped.stderr)
        self.assertIn("over 30 sentences", piped.stderr)
        self.convert(planted, self.home / "unharmed", "--precision", "bfloat16", *check,
                     "--tolerance", 60)
        self.convert(planted, self.home / "harmed", "--no-check")
        self.assertNotEqual(self.translate(self.home / "harmed"),
                            (self.home / "planted.de").read_bytes())

    def test_what_it_checks_by(self):
        said = self.convert(self.model, self.home / "remembered", "--tolerance", "100")
        self.assertIn("20 sentences of " + str(self.model / "development.json"), said)
        forgetful = self.home / "forgetful"
        subprocess.run(["cp", "-a", str(self.model), str(forgetful)], check=True)
        (forgetful / "development.json").unlink()
        self.refused(2, "nmt-convert", forgetful, self.home / "nothing",
                     says=("--check", "--no-check"))
        (forgetful / "development.json").write_text("{}")
        self.refused(3, "nmt-convert", forgetful, self.home / "nothing", says=("development.json",))
        (self.home / "short.de").write_text("ein Hund\n")
        self.refused(3, "nmt-convert", self.model, self.home / "nothing",
                     "--check", self.home / "check.en", self.home / "short.de", says=("30", "1"))
        self.refused(2, "nmt-convert", self.model, self.home / "nothing",
                     "--check", self.home / "check.en", says=("reference",))
        self.refused(2, "nmt-convert", self.model, self.home / "nothing", *self.check, "--no-check",
                     says=("no-check",))
        (self.home / "long.en").write_text("the dog\n" * 5 + "the dog " * 1000 + "\n")
        (self.home / "long.de").write_text("ein Hund\n" * 6)
        said = self.convert(self.model, self.home / "cropped", "--check", self.home / "long.en",
                            self.home / "long.de", "--tolerance", "100")
        self.assertNotIn("--max-length", said)
        self.refused(2, "nmt-convert", self.model, self.home / "nothing", "--precision", "int4",
                     says=("int4", "int8"))
        self.refused(2, "nmt-convert", self.home / "nowhere", self.home / "nothing",
                     says=("nowhere",))
        self.assertFalse((self.home / "nothing").exists())

    def test_the_check_is_spread_over_its_text(self):
        """The first half of the references shares no word with any output, so a check of it alone
        has 0 BLEU."""
        sources = (self.home / "check.en").read_text().splitlines()[:20]
        outputs = run("nmt-translate", "-m", self.model,
                      stdin="\n".join(sources).encode() + b"\n").stdout.decode().splitlines()
        (self.home / "spread.en").write_text("\n".join(sources) + "\n")
        (self.home / "spread.de").write_text("\n".join(["Q Q Q Q"] * 10 + outputs[10:]) + "\n")
        said = self.convert(self.model, self.home / "spread", "--check", self.home / "spread.en",
                            self.home / "spread.de", "--check-sentences", "10",
                            "--precision", "bfloat16", "--tolerance", "100")
        self.assertGreater(float(re.search(r"BLEU ([\d.]+) in float32", said)[1]), 5, said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
