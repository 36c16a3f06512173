"""What the tests of nmt-distill share: a toy corpus, a tiny teacher, and a finished run."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 240
TINY = ["--dim-emb", "16", "--dim-rnn", "16", "--enc-depth", "1", "--dec-depth", "1",
        "--mini-batch-words", "400", "--save-freq", "30u", "--valid-freq", "60u",
        "--valid-metrics", "cross-entropy", "--learn-rate", "0.004", "--cpu-threads", "1"]


def run(program, *arguments, stdin=b""):
    return subprocess.run([str(BIN / program), *map(str, arguments)], input=stdin,
                          capture_output=True, timeout=SECONDS)


def output_of(program, *arguments, stdin=b""):
    result = run(program, *arguments, stdin=stdin)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


def with_values(options, values):
    """Options with their values, of which some are replaced."""
    return [*(word for name, value in zip(options[::2], options[1::2]) if name not in values
              for word in (name, value)), *values]


def lines_of(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


class DistillCase(unittest.TestCase):
    """A finished run of nmt-distill in `work`, by the arguments `all`."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_toy_corpus.py"),
                        "--pairs", "1500", "--seed", "3", str(cls.home)], check=True,
                       timeout=SECONDS, capture_output=True)
        sides = [lines_of(cls.home / f"train.{end}")[:120] for end in ("en", "de")]
        # What a filter is for: a blank line, lines that are there twice, and one that is much
        # longer than its translation can be.
        for side in sides:
            side[7], side[60:80] = "", side[10:30]
        sides[0][50] = "x" * 900
        cls.source, cls.reference = cls.home / "text.en", cls.home / "text.de"
        for path, side in zip((cls.source, cls.reference), sides):
            path.write_text("".join(line + "\n" for line in side), encoding="utf-8")
        cls.valid = [cls.home / f"few.{end}" for end in ("en", "de")]
        for path, end in zip(cls.valid, ("en", "de")):
            path.write_text("".join(line + "\n"
                                    for line in lines_of(cls.home / f"valid.{end}")[:8]),
                            encoding="utf-8")
        # The teacher translates a little; the other models need not.
        learned = ["--dim-emb", "32", "--dim-rnn", "32", "--mini-batch-words", "600",
                   "--learn-rate", "0.006", "--dropout", "0", "--label-smoothing", "0",
                   "--after", "500u"]
        for name, one, other, options in (("teacher", "en", "de", learned),
                                          ("backward", "de", "en", ["--after", "60u"])):
            sets = [cls.home / f"few.{one}", cls.home / f"few.{other}"]
            output_of("nmt-train", cls.home / f"train.{one}", cls.home / f"train.{other}",
                      "--valid-sets", *sets, "--model", cls.home / name,
                      "--unit", "gru", "--dim-vocabs", "400", *with_values(TINY, options))
        cls.base = ["--teacher", cls.home / "teacher", "--valid-sets", *cls.valid,
                    "--part-lines", "40", "--teacher-beam-size", "3",
                    "--tolerance", "100", "--after", "60u", *TINY]
        cls.work = cls.home / "work"
        cls.all = [*cls.base, "--output", cls.work, "--backward", cls.home / "backward",
                   "--backward-drop", "0.2", "--json", cls.source, cls.reference]
        cls.first = run("nmt-distill", *cls.all)
        assert cls.first.returncode == 0, cls.first.stderr.decode()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def step(self, name):
        return json.loads((self.work / "steps" / f"{name}.json").read_text(encoding="utf-8"))

    def refused(self, status, *arguments, says=()):
        result = run("nmt-distill", *arguments)
        errors = [line
                  for line in result.stderr.decode().splitlines() if line.startswith("error: ")]
        self.assertEqual(result.returncode, status, result.stderr.decode())
        self.assertEqual(len(errors), 1, result.stderr.decode())
        self.assertEqual(result.stdout, b"")
        for word in says:
            self.assertIn(str(word), errors[0])

    def copied(self, name):
        """A copy of the finished run, and the arguments that continue it."""
        work = self.home / name
        shutil.copytree(self.work, work, symlinks=True)
        return work, [work if word == self.work else word for word in self.all]
