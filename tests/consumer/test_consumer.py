#!/usr/bin/env python3
"""Installs nmt, moves the prefix, and uses it as a stranger would. Usage: test_consumer.py
BUILD_FOLDER.

The headers compile alone and include nothing but the standard library; examples/ builds against the
moved prefix through find_package and pkg-config; the examples train and translate, and the programs
there give the same translations."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 300  # far more than any command here takes
PUBLIC = "NMT_0.2"


def command(*words, stdin=None, cwd=None, env=None):
    result = subprocess.run([str(word) for word in words], input=stdin, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=SECONDS, cwd=cwd, env=env)
    assert result.returncode == 0, (words, result.stdout.decode(), result.stderr.decode())
    return result.stdout


def cache(name):
    return re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M).group(1)


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        command("cmake", "--install", BUILD, "--prefix", cls.home / "first")
        cls.prefix = cls.home / "moved" / "nmt"
        cls.prefix.parent.mkdir()
        shutil.move(cls.home / "first", cls.prefix)
        cls.compiler = cache("CMAKE_CXX_COMPILER")
        cls.libdir = next(cls.prefix.glob("lib*/**/libnmt.so")).parent
        command("cmake", "-S", ROOT / "examples", "-B", cls.home / "examples",
                f"-DCMAKE_PREFIX_PATH={cls.prefix}",
                f"-DCMAKE_CXX_COMPILER={cls.compiler}", "-DCMAKE_BUILD_TYPE=Debug")
        command("cmake", "--build", cls.home / "examples")
        cls.facade = cls.home / "facade"
        command(cls.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror",
                ROOT / "tests/consumer/facade.cpp", "-o", cls.facade,
                *cls.pkg_config("--cflags", "--libs"), f"-Wl,-rpath,{cls.libdir}")
        command(sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "600",
                "--seed", "5", cls.home)
        cls.model = cls.home / "model"
        cls.told = command(cls.home / "examples/train", cls.home / "train.en",
                           cls.home / "train.de", cls.model).decode()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def pkg_config(cls, *words):
        env = dict(os.environ, PKG_CONFIG_PATH=str(cls.libdir / "pkgconfig"))
        return shlex.split(command("pkg-config", *words, "nmt", env=env).decode())

    def test_headers_stand_alone(self):
        headers = sorted((self.prefix / "include" / "nmt").glob("*"))
        self.assertGreater(len(headers), 8)
        for header in headers:
            unit = self.home / "alone.cpp"
            unit.write_text(f"#include <nmt/{header.name}>\n")
            read = command(self.compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                           "-M", unit, "-I", self.prefix / "include").decode()
            for library in ("fmt", "yaml-cpp", "nlohmann", "boost", "sentencepiece"):
                self.assertNotIn(f"/{library}/", read, header.name)
            self.assertNotIn(str(ROOT), read.replace(str(self.prefix), ""), header.name)

    def installed(self, program, *arguments, stdin=None):
        return command(self.prefix / "bin" / program, *arguments, stdin=stdin)

    def test_example_trains(self):
        self.assertRegex(self.told, r"update 10, loss \d")
        self.assertRegex(self.told, r"bleu \d")
        self.assertIn("finished after 40 updates", self.told)

    def test_training_is_that_of_the_program(self):
        again = self.home / "again"
        self.installed("nmt-train", self.home / "train.en", self.home / "train.de",
                       "--model", again, "--unit", "gru", "--dim-vocabs", "400",
                       "--dim-emb", "48", "--dim-rnn", "48", "--enc-depth", "1", "--dec-depth", "1",
                       "--mini-batch-words", "800", "--disp-freq", "10u", "--after", "40u",
                       "--lr-warmup", "20u", "--valid-lines", "50", "--quiet")
        files = [folder / "checkpoints" / "40" / "model.safetensors"
                 for folder in (self.model, again)]
        self.assertEqual(files[0].read_bytes(), files[1].read_bytes())

    def test_example_translates(self):
        lines = (self.home / "test.en").read_bytes()
        by_library = command(self.home / "examples/translate", self.model, stdin=lines)
        self.assertEqual(by_library.count(b"\n"), lines.count(b"\n"))
        self.assertEqual(by_library,
                         self.installed("nmt-translate", "-m", self.model, "--quiet", stdin=lines))

    def test_example_fails_on_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([self.home / "examples/translate", self.model],
                                  input=b"the dog\n", stdout=full, stderr=subprocess.PIPE,
                                  timeout=SECONDS)
        self.assertEqual((done.returncode, done.stderr),
                         (1, b"error: standard output: cannot be written\n"))

    def test_n_best_of_an_ensemble(self):
        source = self.home / "test.en"
        self.assertEqual(command(self.facade, "translate", self.model, self.model, source),
                         self.installed("nmt-translate", "-m", self.model, self.model,
                                        "--weights", "0.75", "0.25", "--n-best", "--beam-size", "3",
                                        "--alignment", "word", "--max-length-offset", "5",
                                        "--quiet", "-i", source))

    def test_scores(self):
        pair = self.home / "test.en", self.home / "test.de"
        self.assertEqual(command(self.facade, "score", self.model, *pair),
                         self.installed("nmt-score", "-m", self.model, "--alignment", "subword",
                                        "--quiet", *pair))

    def test_metrics(self):
        system, reference = self.home / "system.de", self.home / "test.de"
        system.write_bytes(reference.read_bytes().replace(b"e", b"a", 40))
        bleu, chrf, signature, baseline, other = command(self.facade, "metrics", system,
                                                         reference).decode().splitlines()
        for metric, value in (("bleu", bleu), ("chrf", chrf)):
            told = self.installed("nmt-bleu", reference, "-i", system, "-m", metric,
                                  "-b", "-w", "4").decode()
            self.assertEqual(told.strip(), value)
        self.assertIn("version:nmt-" + self.pkg_config("--modversion")[0], signature)
        self.assertEqual(baseline, f"{bleu} -1.0000")
        told = json.loads(self.installed("nmt-bleu", reference, "-i", system, reference,
                                         "-m", "bleu", "--paired-bs"))[1]["BLEU"]
        self.assertEqual(other, f"{told['score']:.4f} {told['p_value']:.4f}")

    def test_model_info(self):
        kind, unit, width, parameters, vocabulary, text = (
            command(self.facade, "info", self.model).decode().split(None, 5))
        self.assertEqual((kind, unit, width, text), ("deep", "gru", "48", "the dog\n"))
        told = json.loads(self.installed("nmt-info", self.model, "--json"))
        self.assertEqual(int(parameters), told["parameters"]["total"])
        self.assertEqual(int(vocabulary), told["vocabulary"]["source"])

    def test_errors(self):
        lines = command(self.facade, "errors", self.model).decode().splitlines()
        self.assertEqual([line.split()[0] for line in lines],
                         ["2", "2", "2", "2", "2", "3", "3", "3", "2"], lines)
        for line, text in zip(lines, ("no-such-model", "beam-size", "beam-size", "input",
                                      "beam-size", "line feed", "1", "2", "missing")):
            self.assertIn(text, line)

    def test_pkg_config(self):
        self.assertEqual(command(self.facade).decode().strip(), self.pkg_config("--modversion")[0])

    def test_examples_use_public_symbols_only(self):
        for program in (self.home / "examples/train", self.home / "examples/translate",
                        self.facade):
            symbols = command("nm", "-DC", "--undefined-only", program).decode()
            used = [line.split(None, 1)[1] for line in symbols.splitlines() if " nmt::" in line]
            self.assertTrue(used)
            for symbol in used:
                self.assertTrue(symbol.endswith("@" + PUBLIC), symbol)

    def test_installed_files(self):
        for file in ("bin/nmt-train", "share/nmt/configs/toy.yaml"):
            self.assertTrue((self.prefix / file).exists(), file)
        shared = [path.name for path in self.libdir.glob("lib*.so*")]
        self.assertTrue(all(name.startswith("libnmt.so") for name in shared), shared)
        for path in self.prefix.rglob("*"):
            if path.suffix in {".cmake", ".pc"}:
                self.assertNotIn(str(ROOT), path.read_text(), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
