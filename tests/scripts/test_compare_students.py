#!/usr/bin/env python3
"""scripts/bench/students/compare_students.py without its rival: what it refuses, and what it tells
nmt-translate. Usage: test_compare_students.py [BIN_DIR]"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/bench/students/compare_students.py"
sys.path.insert(0, str(SCRIPT.parent))
import compare_students  # noqa: E402

STAND_IN = """#!/bin/sh
printf '%s\\n' "$@" > "$(dirname "$0")/arguments"
echo '2 lines in 2.00 s (1.500 s of CPU time): 1.0 sentences/s, 5 source and 30 target tokens/s' >&2
"""


class CompareStudents(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="nmt-students-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.model = self.folder / "model"
        self.model.mkdir()
        (self.model / "config.json").write_text(json.dumps({"precision": "int8"}))
        self.text, self.list = self.folder / "text", self.folder / "list"
        self.text.write_text("a b\nc\n")
        self.list.write_text("x a 0.9\ny a 0.1\nz b 1\nx NULL 0.6\ny NULL 0.4\n")
        (self.folder / "bin").mkdir()
        program = self.folder / "bin/nmt-translate"
        program.write_text(STAND_IN)
        program.chmod(0o755)

    def store(self, frequent, translations):
        (self.model / "shortlist.bin").write_bytes(
            b"NMTSLIST" + struct.pack("<6I", 1, 1, 3, 3, frequent, translations))

    def arguments(self, **more):
        given = {"model": self.model, "source": self.text, "shortlist": None, "lines": 10,
                 "factor": 1.0, "batch": 64, "threads": 1, "workers": 1, "allow_unequal": False}
        return argparse.Namespace(**{**given, **more})

    def refused(self, *arguments, status=1):
        """The error of the script, which ends before it asks for PyTorch or CTranslate2."""
        done = subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True,
                              text=True, timeout=60,
                              env={**os.environ, "NMT_BUILD": str(self.folder)})
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_missing_files_are_one_line(self):
        self.assertIn("compare_students.py: missing: No such file",
                      self.refused(self.model, "missing", status=2))
        self.assertIn("none/config.json: No such file",
                      self.refused(self.folder / "none", self.text, status=2))
        self.store(3, 3)
        self.assertIn("compare_students.py: missing: No such file",
                      self.refused(self.model, self.text, "--shortlist", "missing", 2, 2, status=2))
        self.list.write_text("x a 0.9\nx a\n")
        self.assertIn("list:2: expected TARGET SOURCE PROBABILITY",
                      self.refused(self.model, self.text, "--shortlist", self.list, 2, 2))
        self.assertIn("FIRST and BEST are numbers",
                      self.refused(self.model, self.text, "--shortlist", self.list, 2, "many"))
        self.text.write_text("\n")
        self.assertIn("text: has no text", self.refused(self.model, self.text, status=3))

    def test_a_shortlist_must_be_stored(self):
        self.assertIn("has no stored shortlist",
                      self.refused(self.model, self.text, "--shortlist", self.list, 2, 2))
        self.store(3, 5)
        self.assertIn("translations of the shortlists: 5 of nmt-translate and 3 of CTranslate2",
                      self.refused(self.model, self.text, "--shortlist", self.list, 2, 2))
        self.store(3, 3)
        given = compare_students.shortlist_of(self.arguments(shortlist=(str(self.list), "2", "2")))
        given.write_map(self.folder / "map")
        self.assertEqual((self.folder / "map").read_text(), "\tx y\na\tx y\nb\tz\n")

    def test_without_a_shortlist_the_stored_one_is_off(self):
        os.environ["NMT_BUILD"] = str(self.folder)
        self.addCleanup(os.environ.pop, "NMT_BUILD")
        self.store(3, 3)
        self.assertEqual(compare_students.run_ours(self.arguments(), ["a b", "c"]), (1.5, 60))
        words = (self.folder / "bin/arguments").read_text().split("\n")
        self.assertEqual(words[words.index("--shortlist") + 1], "off")
        self.assertEqual(compare_students.run_ours(
            self.arguments(shortlist=("list", "2", "2"), workers=2), ["a b", "c"]), (2.0, 60))
        self.assertNotIn("--shortlist", (self.folder / "bin/arguments").read_text().split("\n"))

    def test_unequal_work_is_refused(self):
        compare_students.check_equal(self.arguments(), "weights", 105, 100)
        with self.assertRaises(SystemExit) as refused:
            compare_students.check_equal(self.arguments(), "weights", 94, 100)
        self.assertIn("weights: 94 of nmt-translate and 100 of CTranslate2 differ by more than 5 %",
                      refused.exception.code)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            compare_students.check_equal(self.arguments(allow_unequal=True), "weights", 94, 100)
        self.assertIn("warning: weights", said.getvalue())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
