#!/usr/bin/env python3
"""nmt-vocab as its users call it: trains, shows, round trips, and leaves with the right
status on bad input."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]) / "nmt-vocab"
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments, text=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], input=text, capture_output=True)


class Vocab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.keep.name)
        subprocess.run([sys.executable, SOURCE / "scripts/data/make_toy_corpus.py",
                        "--pairs", "1000", cls.folder], check=True)
        cls.model = cls.folder / "joint.spm"
        trained = run("train", cls.folder / "train.en", cls.folder / "train.de", "--size", 500,
                      "--model", cls.model)
        assert trained.returncode == 0, trained.stderr

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def test_same_bytes_again(self):
        again = self.folder / "again.spm"
        run("train", self.folder / "train.en", self.folder / "train.de", "--size", 500, "-m", again)
        self.assertEqual(again.read_bytes(), self.model.read_bytes())
        self.assertEqual(sorted(path.name for path in self.folder.glob("again*")), ["again.spm"])

    def test_round_trip(self):
        text = (self.folder / "test.de").read_bytes()
        for ids in ([], ["--ids"]):
            encoded = run("inspect", self.model, "--encode", *ids, text=text)
            self.assertEqual(encoded.returncode, 0, encoded.stderr)
            self.assertEqual(encoded.stdout.count(b"\n"), 200)
            if ids:
                self.assertRegex(encoded.stdout, rb"\A[0-9 \n]*\Z")
            else:
                self.assertEqual(encoded.stdout.decode().replace(" ", "").replace(
                    "\u2581", " ").replace("\n ", "\n")[1:], text.decode())
            self.assertEqual(run("inspect", self.model, "--decode", *ids,
                                 text=encoded.stdout).stdout, text)

    def test_pieces(self):
        lines = run("inspect", self.model, "--pieces").stdout.decode().splitlines()
        self.assertEqual(lines[:3], ["0\t<unk>", "1\t<s>", "2\t</s>"])
        self.assertEqual([int(line.split("\t")[0]) for line in lines], list(range(500)))
        summary = run("inspect", self.model).stdout.decode()
        self.assertIn("500", summary.splitlines()[0])

    def test_a_line_for_a_line(self):
        odd = b"\xef\xbb\xbfa\r\n\n  \nx\xff\x00y\n\xe2\x80\xa8\rz"
        encoded = run("inspect", self.model, "--encode", text=odd)
        self.assertEqual((encoded.returncode, encoded.stdout.count(b"\n")), (0, 5))
        self.assertEqual(encoded.stderr.count(b"standard input"), 4)

    def test_small_text(self):
        small = self.folder / "small.txt"
        small.write_text("a b\n")
        run_small = run("train", small, "--size", 8000, "--model", self.folder / "small.model")
        self.assertEqual(run_small.returncode, 0, run_small.stderr)
        self.assertIn(b"pieces instead of 8000", run_small.stderr)

    def test_lines_as_long_as_sentencepiece_can_train_on(self):
        long = self.folder / "long.txt"
        for word in ("x" * 16383, "\u3316" * 5461):  # NFKC makes six letters of U+3316
            long.write_text(f"{word}\nhello world\n")
            trained = run("train", long, "--max-line-bytes", 16383, "-s", 40,
                          "-m", self.folder / "long.spm")
            self.assertEqual((trained.returncode, b"skipped" in trained.stderr), (0, False),
                             trained.stderr)
        refused = run("train", long, "--max-line-bytes", 16384, "-m", self.folder / "never.spm")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(b"from 1 to 16383", refused.stderr)

    def test_inputs_and_configurations_are_no_outputs(self):
        text, config = self.folder / "shared.txt", self.folder / "shared.yml"
        text.write_text("a b\n")
        with open(text, "rb") as opened:
            answer = subprocess.run([PROGRAM, "inspect", self.model, "--encode", "-o", text],
                                    stdin=opened, capture_output=True)
        self.assertEqual((answer.returncode, text.read_text()), (2, "a b\n"), answer.stderr)
        self.assertIn(b"is the input", answer.stderr)
        config.write_text("encode: true\n")
        answer = run("inspect", self.model, "--config", config, "-o", config, text=b"a\n")
        self.assertEqual((answer.returncode, config.read_text()), (2, "encode: true\n"),
                         answer.stderr)
        self.assertIn(b"is a configuration file", answer.stderr)
        with open(text, "rb") as opened:  # nothing is read from it
            self.assertEqual(subprocess.run([PROGRAM, "inspect", self.model,
                                             "--pieces", "-o", text], stdin=opened).returncode, 0)

    def test_a_closed_output_is_an_error(self):
        answer = subprocess.run(['"$0" inspect "$1" --pieces >&-', PROGRAM, self.model],
                                shell=True, capture_output=True)
        self.assertEqual(answer.returncode, 1)
        self.assertIn(b"standard output", answer.stderr)

    def test_help(self):
        for arguments in (["--help"], ["train", "--help"], ["inspect", "--help"]):
            answer = run(*arguments)
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))
            self.assertIn(b"Usage: nmt-vocab", answer.stdout)

    def test_text_is_not_replaced_by_a_vocabulary(self):
        text = self.folder / "text.en"
        text.write_bytes((self.folder / "test.en").read_bytes())
        answer = run("train", text, "--model", text)
        self.assertEqual(answer.returncode, 2)
        self.assertIn(b"is no vocabulary", answer.stderr)
        self.assertEqual(text.read_bytes(), (self.folder / "test.en").read_bytes())
        out = self.folder / "again.spm"
        for _ in range(2):  # a vocabulary may be
            self.assertEqual(run("train", text, "--size", "80", "--model", out).returncode, 0)

    def test_errors(self):
        empty, foreign = self.folder / "empty", self.folder / "foreign.spm"
        empty.write_bytes(b"")
        foreign.write_bytes(self.model.read_bytes()[:1000])
        out = self.folder / "never.spm"
        cases = [([], 2), (["learn"], 2), (["train"], 2), (["train", "--model", out], 2),
                 (["train", self.model], 2),
                 (["train", "/nonexistent", "--model", out], 2),
                 (["train", self.folder, "--model", out], 2),
                 (["train", empty, "--model", out], 3),
                 (["train", self.folder / "test.en", "--model", "/nonexistent/x"], 2),
                 (["train", empty, "--sise", 5], 2), (["inspect"], 2),
                 (["inspect", "/nonexistent"], 2),
                 (["inspect", foreign], 3), (["inspect", empty], 3),
                 (["inspect", self.model, "--encode", "--pieces"], 2),
                 (["inspect", self.model, "--ids"], 2),
                 (["inspect", self.model, "--pieces", "-i", "x"], 2),
                 (["inspect", self.model, "--decode", "--ids"], 3)]
        for arguments, status in cases:
            answer = run(*arguments, text=b"12 x3\n")
            self.assertEqual(answer.returncode, status, (arguments, answer.stderr))
            self.assertEqual(answer.stderr.count(b"\n"), 1, (arguments, answer.stderr))
            self.assertEqual(answer.stdout, b"")
        self.assertEqual([path.name for path in self.folder.iterdir() if "never" in path.name], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
