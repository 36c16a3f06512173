#!/usr/bin/env python3
"""nmt-translate --shortlist, nmt-score --alignment and scripts/data/make_shortlist.py, on a tiny
model trained by nmt-train. Usage: test_shortlist.py BIN_FOLDER."""
import collections
import pathlib
import random
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


def output_of(program, *arguments, stdin=b""):
    result = run(program, *arguments, stdin=stdin)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


class Shortlists(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_toy_corpus.py"),
                        "--pairs", "600", "--seed", "3", str(cls.home)], check=True,
                       timeout=SECONDS)
        cls.lines = (cls.home / "test.en").read_bytes().splitlines(keepends=True)[:70]
        cls.model, cls.list = cls.home / "model", cls.home / "list"
        trained = run("nmt-train", cls.home / "train.en", cls.home / "train.de",
                      "--valid-sets", cls.home / "valid.en", cls.home / "valid.de",
                      "--model", cls.model, "--unit", "gru", "--dim-vocabs", "250",
                      "--dim-emb", "32", "--dim-rnn", "32", "--enc-depth", "1",
                      "--dec-depth", "1", "--after", "300u", "--mini-batch-words", "400",
                      "--valid-freq", "300u", "--save-freq", "300u", "--valid-max-sentences", "5",
                      "--beam-size", "1", "--valid-metrics", "cross-entropy",
                      "--learn-rate", "0.004", "--precision", "float32", "--cpu-threads", "1")
        assert trained.returncode == 0, trained.stderr.decode()
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_shortlist.py"),
                        str(cls.model), str(cls.home / "train.en"), str(cls.home / "train.de"),
                        "-o", str(cls.list), "--bin", str(BIN), "--keep", "30"], check=True,
                       timeout=SECONDS, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def translate(self, *arguments, text=None):
        return output_of("nmt-translate", "-m", self.model, "--quiet", *arguments,
                         stdin=b"".join(self.lines) if text is None else text)

    def refused(self, status, *arguments, says=()):
        result = run("nmt-translate", "-m", self.model, "--shortlist", *arguments,
                     stdin=b"".join(self.lines[:2]))
        errors = [line
                  for line in result.stderr.decode().splitlines() if line.startswith("error: ")]
        self.assertEqual(result.returncode, status, result.stderr.decode())
        self.assertEqual(len(errors), 1, result.stderr.decode())
        self.assertEqual(result.stdout, b"")
        for word in says:
            self.assertIn(str(word), errors[0])

    def entries(self):
        """The list: target piece -> frequency, source piece -> [(probability, target piece)]."""
        frequency, translations = {}, collections.defaultdict(list)
        for line in self.list.read_text(encoding="utf-8").splitlines():
            target, source, number = line.split(" ")
            if source == "NULL":
                frequency[target] = float(number)
            else:
                translations[source].append((float(number), target))
        return frequency, translations

    def test_the_list_counts_the_model_s_own_links(self):
        frequency, translations = self.entries()
        self.assertAlmostEqual(sum(frequency.values()), 1, places=3)
        sides = [output_of("nmt-vocab", "inspect", self.model / "vocab.spm",
                           "--encode", "-i", self.home / f"train.{end}").decode().splitlines()
                 for end in ("en", "de")]
        counts = collections.Counter(piece for line in sides[1] for piece in line.split(" "))
        for piece, share in frequency.items():
            self.assertAlmostEqual(share, counts[piece] / counts.total(), places=6)
        links = output_of("nmt-score", "--quiet", "-m", self.model, "-t", self.home / "train.en",
                          self.home / "train.de", "--alignment", "subword").decode().splitlines()
        together = collections.defaultdict(collections.Counter)
        for source, target, line in zip(*sides, links, strict=True):
            source, target = source.split(" "), target.split(" ")
            pairs = [tuple(map(int, link.split("-"))) for link in line.split(" ||| ")[1].split()]
            self.assertEqual(sorted(t for _, t in pairs), list(range(len(target))))
            for s, t in pairs:
                together[source[s]][target[t]] += 1
        for source, listed in translations.items():
            self.assertEqual(sorted(listed, key=lambda entry: -entry[0]), listed)
            for share, target in listed:
                self.assertAlmostEqual(share, together[source][target] / together[source].total(),
                                       places=5)

    def test_a_document_model_aligns_with_context(self):
        """Skipped pairs and empty lines keep their places: the counts are those of the
        whole text."""
        model, made = self.home / "documents", self.home / "documents.list"
        text = [self.home / f"documents.{side}" for side in ("en", "de")]
        for path in text:
            lines = (self.home
                     / f"train{path.suffix}").read_text(encoding="utf-8").splitlines()[:200]
            # Documents of two sentences, and a sentence without a translation.
            path.write_text("".join(("" if i % 10 == 0 and path.suffix == ".de" else line) + "\n"
                                    + "\n" * (i % 2) for i, line in enumerate(lines)),
                            encoding="utf-8")
        output_of("nmt-train", *text, "--valid-sets", *text, "--model", model,
                  "--context-sentences", 1, "--unit", "gru", "--dim-vocabs", 250, "--dim-emb", 32,
                  "--dim-rnn", 32, "--enc-depth", 1, "--dec-depth", 1, "--after", "60u",
                  "--mini-batch-words", 400, "--valid-freq", "60u", "--save-freq", "60u",
                  "--valid-max-sentences", 5, "--valid-metrics", "cross-entropy",
                  "--learn-rate", 0.004, "--precision", "float32", "--cpu-threads", 1)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_shortlist.py"), str(model),
                        *map(str, text), "-o", str(made), "--bin", str(BIN),
                        "--precision", "float32", "--keep", "1000"], check=True, timeout=SECONDS,
                       capture_output=True)
        sides = [output_of("nmt-vocab", "inspect", model / "vocab.spm",
                           "--encode", "-i", path).decode().split("\n")[:-1] for path in text]
        scored = output_of("nmt-score", "--quiet", "-m", model, "-t", *text,
                           "--alignment", "subword", "--precision", "float32").decode().splitlines()
        together = collections.defaultdict(collections.Counter)
        for source, target, line in zip(*sides, scored, strict=True):
            for s, t in (map(int, link.split("-")) for link in line.split(" ||| ")[1].split()):
                together[source.split(" ")[s]][target.split(" ")[t]] += 1
        listed = [line.split(" ") for line in made.read_text(encoding="utf-8").splitlines()]
        found = {(source, target): float(share)
                 for target, source, share in listed if source != "NULL"}
        expected = {(source, target): count / counts.total() for source, counts in together.items()
                    for target, count in counts.items()}
        self.assertEqual(found.keys(), expected.keys())
        for pair, share in found.items():
            self.assertAlmostEqual(share, expected[pair], places=5)

    def test_outputs_are_of_the_candidates(self):
        frequency, translations = self.entries()
        # Of equals the program takes the lower id: here all of them are allowed.
        always = {piece
                  for piece, share in frequency.items() if share >= sorted(frequency.values())[-20]}
        sources = output_of("nmt-vocab", "inspect", self.model / "vocab.spm", "--encode",
                            stdin=b"".join(self.lines)).decode().splitlines()
        outputs = self.translate("--shortlist", self.list, 20, 3,
                                 "--no-spm-decode").decode().splitlines()
        whole = self.translate("--no-spm-decode").decode().splitlines()
        self.assertEqual(len(outputs), len(sources))
        outside = 0
        for source, output, free in zip(sources, outputs, whole):
            allowed = set(always)
            for piece in source.split(" "):
                if listed := translations[piece]:
                    allowed.update(target for share, target in listed if share >= listed[:3][-1][0])
            self.assertLessEqual(set(output.split()), allowed, source)
            outside += not set(free.split()) <= allowed
        self.assertGreater(outside, 0)  # else the list would restrict nothing

    def test_a_list_of_everything_changes_nothing(self):
        pieces = output_of("nmt-vocab", "inspect", self.model / "vocab.spm",
                           "--pieces").decode().split("\n")
        names = [line.split("\t")[1] for line in pieces if line]
        everything = self.home / "everything"
        everything.write_text("".join(f"{name} NULL 0.001\n" for name in names[3:]),
                              encoding="utf-8")
        for precision in ("float32", "bfloat16", "int8"):
            with self.subTest(precision):
                # Greedy: scores differ by the probability of <unk>.
                self.assertEqual(self.translate("-b", 1, "--precision", precision),
                                 self.translate("-b", 1, "--precision", precision,
                                                "--shortlist", everything, 1000, 0))

    def test_the_same_for_every_batch_order_and_threads(self):
        options = ("--n-best", "--alignment", "subword", "--shortlist", self.list, 15, 4)
        for precision in ("float32", "bfloat16", "int8"):
            with self.subTest(precision):
                outputs = {self.translate(*options, "--precision", precision, "--mini-batch", batch,
                                          "--cpu-threads", threads)
                           for batch, threads in ((1, 1), (2, 2), (7, 1), (64, 2), (64, 1))}
                self.assertEqual(len(outputs), 1)
        order = list(range(len(self.lines)))
        random.Random(5).shuffle(order)
        straight = self.translate("--shortlist", self.list, 15, 4).splitlines()
        shuffled = self.translate("--shortlist", self.list, 15, 4,
                                  text=b"".join(self.lines[i] for i in order)).splitlines()
        self.assertEqual([straight[i] for i in order], shuffled)
        self.assertNotEqual(b"\n".join(straight) + b"\n", self.translate())

    def test_a_model_directory_stores_a_list(self):
        stored = self.home / "stored"
        own = self.home / "own.en", self.home / "own.de"
        own[0].write_bytes(b"".join(self.lines))
        own[1].write_bytes(self.translate())
        refused = run("nmt-convert", self.model, stored, "--shortlist", self.list, 0, 0,
                      "--check", *own)
        self.assertEqual(refused.returncode, 1, refused.stderr.decode())
        self.assertIn(b"int8 with the shortlist loses too much BLEU", refused.stderr)
        self.assertFalse(stored.exists())
        for precision in ("int8", "float32"):
            with self.subTest(precision):
                stored = self.home / f"stored-{precision}"
                output_of("nmt-convert", self.model, stored, "--precision", precision,
                          "--shortlist", self.list, 15, 4, "--no-check")
                text = b"".join(self.lines)
                listed = self.translate("--precision", precision, "--shortlist", self.list, 15, 4)
                self.assertEqual(output_of("nmt-translate", "--quiet", "-m", stored, stdin=text),
                                 listed)
                free = output_of("nmt-translate", "--quiet", "-m", stored,
                                 "--shortlist", "off", stdin=text)
                self.assertEqual(free, self.translate("--precision", precision))
                self.assertNotEqual(free, listed)
                other = output_of("nmt-translate", "--quiet", "-m", stored,
                                  "--shortlist", self.list, 3, 1, stdin=text)
                self.assertEqual(other, self.translate("--precision", precision,
                                                       "--shortlist", self.list, 3, 1))
                self.assertNotEqual(other, listed)
                # An ensemble has none of its own.
                self.assertEqual(output_of("nmt-translate", "--quiet", "-m", stored, stored,
                                           stdin=text), free)
        # Another conversion and an average keep it.
        kept = (self.home / "stored-int8" / "shortlist.bin").read_bytes()
        for tool, folder, *options in (("nmt-convert", "kept", "--precision", "float32"),
                                       ("nmt-convert", "none", "--precision", "float32",
                                        "--shortlist", "off")):
            output_of(tool, self.home / "stored-int8", self.home / folder, *options)
        output_of("nmt-average", self.home / "kept", self.home / "mean", "--last", 1)
        for folder in ("kept", "mean"):
            self.assertEqual((self.home / folder / "shortlist.bin").read_bytes(), kept)
        self.assertFalse((self.home / "none" / "shortlist.bin").exists())
        idle = run("nmt-convert", self.home / "stored-int8", self.home / "idle",
                   "--precision", "float32", "--check", *own)
        self.assertEqual(idle.returncode, 2)
        self.assertIn(b"options without effect: check (weights in float32 without a new shortlist "
                      b"are not checked)", idle.stderr)
        twice = run("nmt-convert", self.home / "stored-int8", self.home / "idle",
                    "--shortlist", "-", "--check", "-", own[-1], stdin=b"x\n")
        self.assertEqual(twice.returncode, 2)
        self.assertIn(b"standard input is given twice", twice.stderr)
        damaged = self.home / "stored-int8" / "shortlist.bin"
        damaged.write_bytes(damaged.read_bytes()[:-9])
        failed = run("nmt-translate", "-m", self.home / "stored-int8", stdin=text)
        self.assertEqual(failed.returncode, 3)
        self.assertIn(b"shortlist.bin: is not a whole stored shortlist: its checksum is wrong",
                      failed.stderr)
        self.assertEqual(failed.stdout, b"")

    def test_an_ensemble_is_restricted_likewise(self):
        twice = output_of("nmt-translate", "-m", self.model, self.model, "--quiet",
                          "--shortlist", self.list, 15, 4, stdin=b"".join(self.lines))
        self.assertEqual(twice, self.translate("--shortlist", self.list, 15, 4))

    def test_pruning_leaves_out_what_is_less_likely(self):
        pruned = self.home / "pruned"
        lines = self.list.read_text(encoding="utf-8").splitlines()
        likely = [line for line in lines if line.split(" ")[1] == "NULL"
                  or float(line.split(" ")[2]) >= 0.2]
        self.assertLess(len(likely), len(lines))
        pruned.write_text("\n".join(likely) + "\n", encoding="utf-8")
        self.assertEqual(self.translate("--shortlist", self.list, 15, 30, 0.2),
                         self.translate("--shortlist", pruned, 15, 30))
        self.assertNotEqual(self.translate("--shortlist", pruned, 15, 30),
                            self.translate("--shortlist", self.list, 15, 30))

    def test_bad_lists_and_options(self):
        bad = self.home / "bad"
        for text, says in (("e e 0.5\nn\n", "bad:2"), ("e e much\n", "bad:1"),
                           ("e e 1.5\n", "probability"), ("", "empty"),
                           ("\u2581xyzzyx NULL 0.5\n", "xyzzyx"),
                           ("e xyzzyx 0.5\n", "source vocabulary"), ("e e 0.5 7\n", "bad:1")):
            bad.write_text(text, encoding="utf-8")
            with self.subTest(text):
                self.refused(3, bad, says=(says,))
        self.refused(2, self.home / "nowhere", says=("nowhere",))
        self.refused(2, self.list, "-3", says=("FIRST",))
        self.refused(2, self.list, 3, "many", says=("BEST", "many"))
        self.refused(2, self.list, 3, 4, 5, says=("PRUNE", "5"))
        self.refused(2, self.list, 3, 4, 0.5, 6, says=("5 arguments",))
        result = run("nmt-score", "-m", self.model, "-t", self.home / "test.en",
                     self.home / "test.de", "--alignment", "subword", "--summary")
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
