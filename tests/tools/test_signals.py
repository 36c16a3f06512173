#!/usr/bin/env python3
"""Signals that end a program: it removes its temporary files, keeps the previous output and ends by
the signal. Usage: test_signals.py BIN_DIR"""
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden"))
import golden

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin").resolve()
RELEASE = ROOT / "tests/golden/0.2"
SECONDS = 60
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.model = golden.unpack(RELEASE, "block-mingru", pathlib.Path(cls.scratch.name) / "model")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def start(self, program, *arguments):
        process = subprocess.Popen([BIN / program, *map(str, arguments)], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def has_temporary(self, process):
        """Waits for a temporary file; False if the program ended before one was seen."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if any(name.startswith(".tmp-") for name in self.names()):
                return True
            if process.poll() is not None:
                return False
        self.fail("no temporary file appeared")

    def interrupt(self, process, number):
        """Sends the signal once there is a temporary file; whether the program ended by it."""
        if self.has_temporary(process):
            process.send_signal(number)
        errors = process.communicate(timeout=SECONDS)[1].decode()
        self.assertIn(process.returncode, (0, -number), errors)
        self.assertEqual(errors, "")
        return process.returncode == -number

    def test_a_file(self):
        text = self.folder / "text"
        text.write_text("three cats see the red house and two dogs today.\n" * 400)
        target = self.folder / "out"
        for program, output, *more in (("nmt-translate", "-o"),  # waits for its standard input
                                       ("nmt-explain", "-o", "-i", text, "--sentences", 400),
                                       ("nmt-explain", "--json", "-i", text, "--sentences", 400)):
            for number in SIGNALS:
                with self.subTest(program=program, output=output, signal=number.name):
                    target.write_text("before\n")
                    process = self.start(program, "-m", self.model, output, target, *more,
                                         "--quiet")
                    self.assertTrue(self.interrupt(process, number))
                    self.assertEqual(self.names(), ["out", "text"])
                    self.assertEqual(target.read_text(), "before\n")

    def test_a_directory(self):
        # The directory is written quickly: some of many tries interrupt it.
        for number in SIGNALS:
            interrupted = 0
            for _ in range(200):
                ended = self.interrupt(self.start("nmt-convert", self.model, self.folder / "int8",
                                                  "--no-check", "--quiet"), number)
                if self.names():  # written before the signal
                    self.assertEqual(self.names(), ["int8"])
                    golden.Programs(BIN).run("nmt-info", self.folder / "int8")
                    shutil.rmtree(self.folder / "int8")
                else:
                    self.assertTrue(ended)
                    interrupted += 1
                if interrupted == 3:
                    break
            self.assertEqual(interrupted, 3, number.name)

    def test_an_ignored_signal(self):
        target = self.folder / "out"
        process = subprocess.Popen(["nohup", BIN / "nmt-translate", "-m", self.model, "-o", target],
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.assertTrue(self.has_temporary(process))
        process.send_signal(signal.SIGHUP)
        process.communicate(b"three cats.\n", timeout=SECONDS)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(target.read_text().splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
