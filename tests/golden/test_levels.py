#!/usr/bin/env python3
"""The kernels of every instruction set that this processor runs. glibc loads those of a lower level
when its tunables hide instructions. Usage: test_levels.py BIN_FOLDER."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import golden

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin").resolve()
LINES = "".join(f"{line}\n" for line in ("a man sleeps .", "two dogs run over the grass .", "",
                                         "a woman in a red coat reads a book .",
                                         "people stand near a house .")).encode()
# Hidden instructions, from the newest kernels to the oldest. A build may have fewer levels.
HIDDEN = ("", "-AVX512F", "-AVX2")


def run(model, hidden, *options, text=LINES, **variables):
    environment = {**os.environ, "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={hidden}", **variables}
    done = subprocess.run([BIN / "nmt-translate", "-m", model, "--n-best", *map(str, options)],
                          input=text, capture_output=True, timeout=120, env=environment)
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return (done.stdout,
            re.search(r"x86-64-v\d|aarch64|generic", done.stderr.decode().splitlines()[0]).group())


class Levels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.release = ROOT / "tests/golden/0.1"
        cls.model = golden.unpack(cls.release, "rnnsearch-gru",
                                  pathlib.Path(cls.folder.name) / "model")
        cls.stored = golden.unpack(cls.release, "rnnsearch-gru-int8",
                                   pathlib.Path(cls.folder.name) / "stored")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_each_level_gives_the_same_for_every_batch_and_close_scores(self):
        loaded, scores = [], {}
        for hidden in HIDDEN:
            # Instructions for bfloat16 round both inputs of a product, without them (NMT_BF16=0)
            # the weights alone.
            for precision, off in (("float32", {}), ("bfloat16", {}),
                                   ("bfloat16", {"NMT_BF16": "0"}), ("int8", {})):
                out, level = run(self.model, hidden, "--precision", precision,
                                 "--cpu-threads", 2, **off)
                self.assertLessEqual(level, min(loaded, default=level))
                loaded.append(level)
                for more in (("--mini-batch", 1, "--cpu-threads", 1),
                             ("--workers", 2, "--cpu-threads", 1)):
                    self.assertEqual(run(self.model, hidden, "--precision", precision, *more,
                                         **off)[0], out, (level, precision, more, off))
                if precision == "bfloat16" and not off:
                    continue
                best = [float(line.rsplit(" ||| ", 1)[1]) for line in out.decode().splitlines()]
                for mine, other in zip(best, scores.setdefault(precision, best)):
                    self.assertLessEqual(abs(mine - other), 1e-3 * abs(other) + 1e-5,
                                         (level, precision))
        print("levels:", ", ".join(dict.fromkeys(loaded)))

    def test_translations_are_the_same_at_each_level(self):
        """Float32 on this text: docs/guide/translate.md says where they may differ."""
        text = (self.release / "source.en").read_bytes()
        for model, precision in ((self.model, "float32"), (self.model, "int8"),
                                 (self.stored, "auto")):
            found = [run(model, hidden, "--precision", precision, text=text)[0].decode()
                     for hidden in HIDDEN]
            best = {tuple(line.split(" ||| ")[1] for line in out.splitlines()) for out in found}
            self.assertEqual(len(best), 1, (precision, best))

    def test_int8_has_the_same_scores_at_each_level(self):
        """Of n-best lists: every score in all its digits."""
        for release in sorted(path.parent
                              for path in (ROOT / "tests/golden").glob("*/expected.json")):
            names = json.loads((release / "expected.json").read_text())["links"]
            text = (release / "source.en").read_bytes()
            for name in names:
                model = golden.unpack(release, name,
                                      pathlib.Path(self.folder.name) / f"{release.name}-{name}")
                found = {}
                for hidden in HIDDEN:
                    out, level = run(model, hidden, "--precision", "int8",
                                     "--cpu-threads", 1, text=text)
                    found.setdefault(level, out)
                self.assertEqual(len(set(found.values())), 1, (release.name, name))

    def test_kernels_compute_the_same_bits_at_each_level(self):
        found = {}
        for hidden in HIDDEN:
            environment = {**os.environ, "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={hidden}"}
            done = subprocess.run([BIN / "kernel_checksums"], capture_output=True, check=True,
                                  env=environment, text=True)
            level, *lines = done.stdout.splitlines()
            found[level] = lines
        first, *others = found.values()
        self.assertGreater(len(first), 20)
        for other in others:
            self.assertEqual(first, other)

    def test_int8_without_vnni_and_amx_gives_the_same_bits(self):
        options = ("--precision", "int8")
        for off in ("NMT_VNNI", "NMT_AMX"):
            self.assertEqual(run(self.model, "", *options, **{off: "0"}),
                             run(self.model, "", *options), off)


if __name__ == "__main__":
    if not (BIN / "nmt-translate").exists():
        print(f"{BIN / 'nmt-translate'} is not built: skipped")
        sys.exit(77)
    unittest.main(verbosity=2)
