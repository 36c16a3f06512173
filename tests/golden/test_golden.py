#!/usr/bin/env python3
"""Models of released versions: this build loads, translates, scores and resumes them as they did.

    test_golden.py BIN_DIR

Translations must be equal, and with the release's rounding (golden.ROUNDING) their scores in int8
too. Scores and the weights after resuming must be the same bits where the build also has the
release's compiler and no sanitizer; elsewhere other instructions may round differently, and they
must agree to a relative 1e-3, scores of weights in int8 of another rounding to 5e-3.

Of 0.2, what block-mingru gives in int8 is that of the first version with attention in int8. Its
scores differ from those in float32 by 2.5 % on average, as those of 0.2 did."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

import golden

ROOT = pathlib.Path(__file__).resolve().parents[2]

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin").resolve()


class GoldenTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)

    def compare(self, release, level):
        expected = json.loads((release / "expected.json").read_text(encoding="utf-8"))
        programs = golden.Programs(BIN, level)
        same_rounding = expected.get("rounding", 1) == golden.ROUNDING
        exact = (programs.build_info("compiler") == expected["compiler"] and same_rounding
                 and not os.environ.get("NMT_SANITIZE"))
        models = golden.RELEASES[release.name].models
        copies = {name: golden.unpack(release, name, self.scratch / f"{name}.{level}")
                  for name in expected["links"]}
        for name, lines in expected["translations"].items():
            with self.subTest(model=name, asked=level):
                found = golden.translate(programs, release, copies[name])
                self.assertEqual(found.splitlines(), lines)
        for name, lines in expected.get("int8", {}).items():
            with self.subTest(int8=name, asked=level):
                found = golden.translate_int8(programs, release, copies[name])
                if same_rounding:
                    self.assertEqual(found, lines)
                self.assertEqual(len(found), len(lines))
                for line, reference in zip(found, lines):
                    (a, text), (b, wanted) = line.split(" ", 1), reference.split(" ", 1)
                    self.assertEqual(text, wanted)
                    self.assertLess(abs(float(a) - float(b)), 5e-3 * abs(float(b)))
        used = programs.level(next(iter(copies.values())))
        for name, levels in expected["resumed"].items():
            with self.subTest(resumed=name, asked=level):
                used, sums = golden.resume(programs, release, copies[name], models[name])
                reference = levels.get(used, levels["x86-64-v3"])
                self.assertEqual(list(sums), list(reference))
                for tensor, (checksum, norm) in reference.items():
                    self.assertLess(abs(sums[tensor][1] - norm), 1e-3 * norm, tensor)
                    if exact and used in levels:
                        self.assertEqual(sums[tensor][0], checksum, f"{tensor} at {used}")
        for name, levels in expected["scores"].items():
            with self.subTest(scored=name, asked=level):
                model = golden.unpack(release, name, self.scratch / f"{name}.{level}.scored")
                found = golden.score(programs, release, model)
                if exact and used in levels:
                    self.assertEqual(found, levels[used])
                self.assertEqual(len(found), len(levels["x86-64-v3"]))
                # With another rounding, some activations of 8 bits are rounded to the next step.
                steps = name.endswith("int8") and not same_rounding
                for a, b in zip(found, levels["x86-64-v3"]):
                    self.assertLess(abs(a - b), (5e-3 if steps else 1e-3) * abs(b))
        return used

    def test_every_release_at_every_level(self):
        releases = sorted(path.parent for path in ROOT.glob("tests/golden/*/expected.json"))
        self.assertTrue(releases)
        for release in releases:
            levels = {self.compare(release, level) for level in golden.installed_levels(BIN)}
            print(f"{release.name}: compared at {', '.join(sorted(levels))}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
