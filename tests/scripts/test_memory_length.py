#!/usr/bin/env python3
"""Tests of scripts/bench/units/memory_length.py: a unit that remembers, the same without training,
and bad input. Usage: test_memory_length.py BIN_DIR"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/bench/units/memory_length.py"


def run(*args):
    return subprocess.run([sys.executable, SCRIPT, *map(str, args)], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "NMT_BUILD": str(BIN.parent)})


class MemoryLengthTest(unittest.TestCase):
    def test_training_makes_a_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            trained = run("--work", work / "a", "--distance", "6", "--width", "32",
                          "--updates", "250", "gru", "lrn:gate-init=constant")
            self.assertEqual(trained.returncode, 0, trained.stderr)
            rows = (work / "a/table.md").read_text(encoding="utf-8").splitlines()[2:]
            self.assertEqual([row.split("|")[1].strip() for row in rows],
                             ["`gru`", "`lrn:gate-init=constant`"])
            for row in rows:
                self.assertEqual(row.split("|")[2].strip(), "6", row)
            lines = xml.etree.ElementTree.parse(work / "a/memory.svg").getroot().findall(
                ".//{http://www.w3.org/2000/svg}polyline")
            self.assertEqual(len(lines), 2)
            fresh = run("--work", work / "b", "--distance", "6", "--width", "32",
                        "--updates", "1", "gru")
            self.assertIn("up to distance 0", fresh.stdout)

    def test_errors_are_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("--work", folder, "--distance", "4", "--updates", "1", "no-such-unit")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("no-such-unit", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
