#!/usr/bin/env python3
"""End-to-end tests of nmt-translate and nmt-score on a tiny model trained by nmt-train. Usage:
test_translate.py BIN_FOLDER.

Lines in are lines out for every odd input; the same bytes for every batch size, order and number of
threads; scores of the two programs agree; a pipe is answered line by line; whatever is wrong is one
line on standard error and the right status."""
import bz2
import gzip
import hashlib
import lzma
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 120  # far more than any command here takes


def run(program, *arguments, stdin=b"", stdout=subprocess.PIPE):
    return subprocess.run([str(BIN / program), *map(str, arguments)], input=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, timeout=SECONDS)


def output_of(program, *arguments, stdin=b""):
    result = run(program, *arguments, stdin=stdin)
    assert result.returncode == 0, (program, arguments, result.stderr.decode())
    return result.stdout


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_toy_corpus.py"),
                        "--pairs", "1500", "--seed", "3", str(cls.home)], check=True,
                       timeout=SECONDS)
        cls.model = cls.home / "model"
        trained = run("nmt-train", cls.home / "train.en", cls.home / "train.de",
                      "--valid-sets", cls.home / "valid.en", cls.home / "valid.de",
                      "--model", cls.model, "--unit", "lrn", "--dim-vocabs", "400",
                      "--dim-emb", "48", "--dim-rnn", "48", "--enc-depth", "1", "--dec-depth", "1",
                      "--after", "120u", "--mini-batch-words", "800", "--learn-rate", "0.003",
                      "--lr-warmup", "40u", "--cpu-threads", "2")
        assert trained.returncode == 0, trained.stderr.decode()
        cls.lines = (cls.home / "test.en").read_bytes().splitlines(keepends=True)[:100]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def translate(self, text, *arguments):
        return output_of("nmt-translate", "-m", self.model, "--quiet", *arguments, stdin=text)

    def refused(self, status, program, *arguments, stdin=b"", says=()):
        result = run(program, *arguments, stdin=stdin)
        message = result.stderr.decode()
        errors = [line for line in message.splitlines() if line.startswith("error: ")]
        self.assertEqual(result.returncode, status, message)
        self.assertEqual(len(errors), 1, message)
        self.assertNotIn("terminate", message)
        self.assertEqual(result.stdout, b"")
        for word in says:
            self.assertIn(str(word), errors[0])

    def test_as_many_lines_out_as_in(self):
        # text, lines of it
        cases = [(b"", 0), (b"\n", 1), (b"\n\n\n", 3), (b"  \n\t\n", 2), (b"the lamp", 1),
                 (b"the lamp\nthe door", 2), (b"the lamp\r\nthe door\r\n", 2),
                 (b"\xef\xbb\xbfthe lamp\n", 1), (b"the\rlamp\nthe door\n", 2),
                 ("the\u2028lamp\u0085door\n".encode(), 1), (b"the \0 lamp\n\0\n", 2),
                 (b"the \xff\xfe lamp\n\xc3\n", 2), (b"x" * 1000000 + b"\nthe door\n", 2),
                 (b"the lamp \n" * 3, 3)]
        for text, lines in cases:
            result = run("nmt-translate", "-m", self.model, "--beam-size", "1",
                         "--max-length-factor", "1", stdin=text)
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            self.assertEqual(result.stdout.count(b"\n"), lines, text[:40])
            self.assertTrue(not result.stdout or result.stdout.endswith(b"\n"))
            for blank, out in zip(text.split(b"\n"), result.stdout.split(b"\n")):
                if not blank.strip():
                    self.assertEqual(out, b"")
            result.stdout.decode()  # valid UTF-8

    def test_compressed_text_and_other_encodings_are_named(self):
        plain = b"".join(self.lines)
        text, target = self.home / "plain.en", self.home / "plain.de"
        text.write_bytes(plain)
        target.write_bytes(plain)
        unzip, convert = ("compressed: decompress it first",
                          ": convert it to UTF-8, for example with iconv")
        cases = [("gzip-" + unzip, gzip.compress(plain)), ("xz-" + unzip, lzma.compress(plain)),
                 ("bzip2-" + unzip, bz2.compress(plain)),
                 *((f"UTF-{bits}{convert}", plain.decode().encode(f"utf-{bits}"))
                   for bits in (16, 32))]
        if shutil.which("zstd"):
            cases.append(("zstd-" + unzip, subprocess.run(
                ["zstd"], input=plain, capture_output=True, check=True, timeout=SECONDS).stdout))
        for message, content in cases:
            name = self.home / "other.en"
            name.write_bytes(content)
            told = f"{name}: {message}"
            self.refused(3, "nmt-translate", "-m", self.model, "--quiet", stdin=content,
                         says=(f"standard input: {message}",))
            self.refused(3, "nmt-translate", "-m", self.model, "--quiet", "-i", name, says=(told,))
            self.refused(3, "nmt-score", "-m", self.model, "-t", name, target, "--quiet",
                         says=(told,))
            self.refused(3, "nmt-score", "-m", self.model, "-t", text, name, "--quiet",
                         says=(told,))
            self.refused(3, "nmt-bleu", target, "-i", name, says=(told,))
            self.refused(3, "nmt-bleu", name, "-i", target, says=(told,))
            self.refused(3, "nmt-vocab", "train", name, "--model", self.home / "other.spm",
                         says=(told,))
            self.refused(3, "nmt-vocab", "inspect", self.model / "vocab.spm",
                         "--encode", "-i", name, says=(told,))
            self.refused(3, "nmt-train", name, target, "--model", self.home / "other", "--quiet",
                         says=(told,))
            self.refused(3, "nmt-train", "--task", "tagging", name, "--model", self.home / "other",
                         "--quiet", says=(told,))
        self.assertFalse((self.home / "other").exists())

    def test_many_lines(self):
        text = b"".join(b"the lamp\n" if i % 500 == 0 else b"\n" for i in range(100000))
        out = self.translate(text, "--beam-size", "1")
        self.assertEqual(out.count(b"\n"), 100000)
        self.assertEqual(len([line for line in out.split(b"\n") if line]), 200)

    def test_crlf_and_byte_order_mark_change_nothing(self):
        plain = b"".join(self.lines[:10])
        self.assertEqual(self.translate(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")),
                         self.translate(plain))

    def test_the_same_for_every_batch_order_and_threads(self):
        text = b"".join(self.lines)
        digests = set()
        for batch in (1, 2, 7, 64):
            for sort in ("src", "none"):
                digests.add(hashlib.sha256(self.translate(text, "--n-best", "--mini-batch", batch,
                                                          "--maxi-batch-sort", sort)).hexdigest())
        for threads in (1, 2, 4):
            digests.add(hashlib.sha256(self.translate(text, "--n-best",
                                                      "--cpu-threads", threads)).hexdigest())
        for workers, threads in ((1, 2), (2, 1), (3, 2)):
            for batch in (1, 64):
                digests.add(hashlib.sha256(self.translate(text, "--n-best", "--workers", workers,
                                                          "--cpu-threads", threads,
                                                          "--mini-batch", batch)).hexdigest())
        self.assertEqual(len(digests), 1)
        order = list(range(len(self.lines)))
        random.Random(5).shuffle(order)
        straight = self.translate(text).splitlines()
        shuffled = self.translate(b"".join(self.lines[i] for i in order)).splitlines()
        self.assertEqual([straight[i] for i in order], shuffled)

    def test_spans_and_terms_survive(self):
        spans = ["{name}", "%s", "https://a.org/b?c=d", "me@x.org", "12,345.6", "Zx qQ"]
        text = ("the lamp " + " and ".join(spans[:-1])
                + f" <keep>{spans[-1]}</keep> stands\n").encode()
        out = self.translate(text, "--preserve").decode()
        for span in spans:
            self.assertIn(span, out)
        self.assertNotIn("keep>", out)
        self.assertEqual(self.translate(text + b"\n", "--preserve",
                                        "--n-best").decode().count("|||"), 6)
        # The parts of a line are not counted as lines.
        log = subprocess.run([str(BIN / "nmt-translate"), "-m", self.model, "--preserve",
                              "--max-length", "3"], text=True, capture_output=True,
                             check=True, input="the lamp stands on the small table\n"
                                               "the lamp stands on https://a.org/b the table "
                                               "stands on the lamp\n").stderr
        self.assertIn("1 line was translated around preserved spans", log)
        self.assertEqual(re.findall(r"(\d+) lines were longer than 3 tokens", log), ["2"], log)
        self.assertEqual(log.count("only the first 3 are translated"), 1, log)
        glossary = self.home / "glossary.tsv"
        glossary.write_text("lamp\tQxzq\n")
        self.assertIn("Qxzq", self.translate(b"the lamp stands\n", "--glossary", glossary).decode())
        plain = b"".join(self.lines)
        self.assertEqual(self.translate(plain, "--preserve", "emails"), self.translate(plain))
        # A term is a whole word of the translation, and the best of a list is the translation:
        # terms that are words of second hypotheses only.
        glossary.write_text("lamp \t Qxzq \n")
        self.assertRegex(self.translate(b"the lamp\n", "--glossary", glossary).decode(),
                         r"(^|\s)Qxzq(\s|$)")
        lists = [line.split(" ||| ")[1]
                 for line in self.translate(b"the lamp stands\n", "--n-best").decode().splitlines()]
        words = set(lists[1].split()) - set(lists[0].split())
        self.assertTrue(words, lists)
        for word in words:
            glossary.write_text(f"lamp\t{word}\n")
            best = self.translate(b"the lamp stands\n",
                                  "--glossary", glossary).decode().rstrip("\n")
            listed = self.translate(b"the lamp stands\n", "--glossary", glossary,
                                    "--n-best").decode().splitlines()
            self.assertEqual(listed[0].split(" ||| ")[1], best)
        self.refused(2, "nmt-translate", "-m", self.model, "--glossary", "-",
                     says=("standard input is given twice",))
        self.refused(2, "nmt-translate", "-m", self.model, "--shortlist", "-",
                     says=("standard input is given twice",))
        # What is read is not replaced.
        self.refused(2, "nmt-translate", "-m", self.model, "--quiet", "--glossary", glossary,
                     "-o", glossary, says=("output",))
        self.assertIn("lamp", glossary.read_text())
        guarded = self.translate(b"lamp\n" * 3, "--repetition-guard").decode().splitlines()
        for line in guarded:
            words = line.lower().strip(".").split()
            self.assertFalse(any(a == b for a, b in zip(words, words[1:])), line)
        glossary.write_text("a\tb\tc\n")
        self.refused(3, "nmt-translate", "-m", self.model, "--quiet", "--glossary", glossary,
                     says=(f"{glossary}:1",))
        self.refused(2, "nmt-translate", "-m", self.model, "--quiet",
                     "--glossary", self.home / "none", says=("none",))
        self.refused(2, "nmt-translate", "-m", self.model, "--quiet", "--preserve",
                     "--alignment", "word", says=("preserve", "alignment"))
        self.refused(2, "nmt-translate", "-m", self.model, "--quiet", "--preserve", "nonsense",
                     says=("nonsense", "placeholders"))

    def test_weights_of_fewer_bits(self):
        """The same for every batch and threads; near float32, and not float32."""
        text = b"".join(self.lines)
        source, target = self.home / "fewer.en", self.home / "fewer.de"
        source.write_bytes(text)
        target.write_bytes(self.translate(text))

        def scores(precision):
            out = output_of("nmt-score", "-m", self.model, "-t", source, target, "--quiet",
                            "--precision", precision)
            return [float(line) for line in out.split()]

        exact = scores("float32")
        for precision, most, mean in (("int8", 0.2, 0.03), ("bfloat16", 0.1, 0.015)):
            with self.subTest(precision):
                outputs = {self.translate(text, "--n-best", "--precision", precision,
                                          "--mini-batch", batch, "--cpu-threads", threads)
                           for batch, threads in ((1, 1), (7, 2), (64, 2))}
                self.assertEqual(len(outputs), 1)
                differences = [abs(a - b) / abs(a)
                               for a, b in zip(exact, scores(precision), strict=True)]
                self.assertLess(max(differences), most)
                self.assertLess(sum(differences) / len(differences), mean)
                self.assertGreater(max(differences), 1e-5)
        self.refused(2, "nmt-translate", "-m", self.model, "--precision", "int4",
                     says=("int4", "int8"))

    def test_workers(self):
        """Alignments, ensembles and scores are those of one worker; the log names the workers."""
        text = b"".join(self.lines)
        source, target = self.home / "workers.en", self.home / "workers.de"
        source.write_bytes(text)
        target.write_bytes(self.translate(text))
        for options in (("--alignment", "word", "--coverage-penalty", "0.2"),
                        ("-m", self.model, "--precision", "int8")):
            expected = self.translate(text, *options, "--workers", 1)
            for more in (("--workers", 2, "--cpu-threads", 1),
                         ("--workers", "auto", "--cpu-threads", 3)):
                self.assertEqual(self.translate(text, *options, *more, "--mini-batch", 9), expected,
                                 (options, more))
            few = b"".join(self.lines[:3])  # batches that share the threads
            self.assertEqual(self.translate(few, *options, "--cpu-threads", 12),
                             self.translate(few, *options, "--workers", 1), options)
        for options in (("--word-scores", "--alignment", "word"), ("--summary", "ce-sum")):
            expected = output_of("nmt-score", self.model, source, target, "--quiet", *options,
                                 "--workers", 1)
            for more in (("--workers", 3, "--cpu-threads", 1), ("--cpu-threads", 2)):
                self.assertEqual(output_of("nmt-score", self.model, source, target, "--quiet",
                                           *options, *more, "--mini-batch", 9), expected)
        for options, words in ((("--workers", 2, "--cpu-threads", 1), b"2 workers of 1 thread,"),
                               (("--cpu-threads", 2), b" 2 threads,")):
            self.assertIn(words, run("nmt-translate", "-m", self.model, *options,
                                     stdin=self.lines[0]).stderr)
        self.refused(2, "nmt-translate", "-m", self.model, "--workers", "-1",
                     says=["workers", "-1", "1024"])

    def test_files_and_the_command_line(self):
        source, target = self.home / "in.txt", self.home / "out.txt"
        source.write_bytes(b"".join(self.lines[:5]))
        expected = self.translate(source.read_bytes())
        self.assertEqual(output_of("nmt-translate", self.model, "--quiet",
                                   stdin=source.read_bytes()), expected)
        self.assertEqual(self.translate(b"", "-i", source, "-o", target), b"")
        self.assertEqual(target.read_bytes(), expected)
        self.assertEqual(sorted(p.name for p in self.home.glob("out.txt*")), ["out.txt"])
        words = [line.decode().rstrip("\n") for line in self.lines[:5]]
        self.assertEqual(output_of("nmt-translate", "-m", self.model, "--quiet", "--", *words),
                         expected)
        with open(source, "rb") as file:
            redirected = subprocess.run([str(BIN / "nmt-translate"), "-m", str(self.model)],
                                        stdin=file, capture_output=True, timeout=SECONDS)
        self.assertEqual(redirected.stdout, expected)
        repaired = run("nmt-translate", "-m", self.model, "--quiet", "--",
                       b"\xff".decode("utf-8", "surrogateescape"))
        self.assertIn(b"line 1 had invalid UTF-8", repaired.stderr)
        self.refused(2, "nmt-translate", "-m", self.model, self.model, "--quiet",
                     "--weights", "1e308", "1e308", says=("sum is not finite",))
        self.refused(2, "nmt-translate", "-m", self.model, "--quiet", "--lm", self.home / "none",
                     "--lm-weight", "0", says=("none",))
        first = redirected.stderr.decode().splitlines()[0]
        for word in ("cpu", "thread", "float32"):
            self.assertIn(word, first)

    def test_n_best_lists(self):
        out = self.translate(b"".join(self.lines[:4]) + b"\n", "--n-best",
                             "--beam-size", "3").decode().splitlines()
        shape = re.compile(r"(\d+) \|\|\| (.*) \|\|\| F0= (-?[\d.]+) \|\|\| (-?[\d.]+)$")
        parts = [shape.match(line).groups() for line in out]
        self.assertEqual([p[0] for p in parts],
                         ["0"] * 3 + ["1"] * 3 + ["2"] * 3 + ["3"] * 3 + ["4"])
        best = self.translate(b"".join(self.lines[:4]), "--beam-size", "3").decode().splitlines()
        self.assertEqual([p[1] for p in parts[0:12:3]], best)
        for i in range(0, 12, 3):
            scores = [float(p[3]) for p in parts[i:i + 3]]
            self.assertEqual(scores, sorted(scores, reverse=True))
        # A cropped side is told by the number of its pair: the second source belongs to
        # pairs 4 to 6.
        source, listed = self.home / "two.txt", self.home / "two.nbest"
        source.write_text("the\n" + "lamp " * 40 + "\n")
        listed.write_text("".join(f"{i // 3} ||| die ||| F0= -1 ||| -1\n" for i in range(6)))
        told = run("nmt-score", "-m", self.model, source, listed, "--n-best", "--max-length", "20",
                   "--quiet").stderr.decode()
        self.assertIn("the source of pair 4 has", told)
        # A text may have separators: it ends where the features begin.
        source.write_text("the\n")
        texts = ["die ||| lampe", "die |||  ||| lampe", "die"]
        listed.write_text("".join(f"0 ||| {text} ||| F0= -1.0 B= 2 ||| -1\n" for text in texts))
        scored = output_of("nmt-score", "-m", self.model, source, listed, "--n-best",
                           "--quiet").decode().splitlines()
        plain = self.home / "plain.text"
        plain.write_text("die ||| lampe\ndie |||  ||| lampe\ndie\n")
        source.write_text("the\n" * 3)
        alone = output_of("nmt-score", "-m", self.model, "-t", source, plain,
                          "--quiet").decode().split()
        self.assertEqual([re.search(r" Score= (\S+)", line)[1] for line in scored], alone)
        self.assertTrue(all(line.startswith(f"0 ||| {text} ||| ")
                            for text, line in zip(texts, scored)))
        self.assertTrue(scored[0].endswith(" ||| F0= -1.0 B= 2 Score= " + alone[0] + " ||| -1"))

    def test_alignments_are_between_words(self):
        for kind in ("word", "subword"):
            arguments = ["--alignment", kind] + (["--no-spm-decode"] if kind == "subword" else [])
            for line, out in zip(self.lines[:20], self.translate(b"".join(self.lines[:20]),
                                                                 *arguments).decode().splitlines()):
                text, alignment = (out.split(" ||| ") if " ||| " in out
                                   else (out.removesuffix(" |||"), ""))
                points = [tuple(map(int, point.split("-"))) for point in alignment.split()]
                self.assertEqual(sorted(t for _, t in points), list(range(len(text.split()))))
                if kind == "word":
                    self.assertTrue(all(0 <= s < len(line.split()) for s, _ in points))

    def test_scores_are_those_of_the_decoder(self):
        """For every translation that the vocabulary segments as the decoder wrote it."""
        source, listed, texts = (self.home / "score.en", self.home / "score.list",
                                 self.home / "score.text")
        source.write_bytes(b"".join(self.lines))
        listed.write_bytes(self.translate(source.read_bytes(), "--n-best", "--length-penalty", "1"))
        before = listed.read_text().splitlines()
        texts.write_text("".join(line.split(" ||| ")[1] + "\n" for line in before))
        written = self.translate(source.read_bytes(), "--n-best", "--length-penalty", "1",
                                 "--no-spm-decode").decode().splitlines()
        vocabulary = next(path for path in (self.model / "vocab.spm", self.model / "trg.spm",
                                            self.model / "src.spm") if path.exists())
        canonical = output_of("nmt-vocab", "inspect", vocabulary,
                              "--encode", "-i", texts).decode().splitlines()
        after = output_of("nmt-score", "-m", self.model, "-t", source, listed, "--n-best",
                          "--length-penalty", "1", "--quiet").decode().splitlines()
        compared = 0
        for old, new, pieces, segmented in zip(before, after, written, canonical, strict=True):
            feature = re.search(r" Score= (-?[\d.]+)", new)
            self.assertEqual(new.replace(feature.group(), ""), old)
            if pieces.split(" ||| ")[1] != segmented:
                continue
            there, here = float(old.rsplit(" ||| ", 1)[1]), float(feature.group(1))
            self.assertLessEqual(abs(here - there), 1e-5 * abs(there) + 1e-6, old)
            compared += 1
        self.assertGreater(compared, len(before) // 10)

    def test_scores_in_pieces_agree_for_every_line(self):
        source, listed = self.home / "p.en", self.home / "p.list"
        text = "".join(f"{line}\n" for line in self.source_pieces())
        source.write_text(text)
        listed.write_bytes(self.translate(text.encode(), "--n-best", "--no-spm-encode",
                                          "--no-spm-decode"))
        scored = output_of("nmt-score", self.model, source, listed, "--n-best", "--no-spm-encode",
                           "--length-penalty", "0.6", "--quiet")
        for before, after in zip(listed.read_text().splitlines(), scored.decode().splitlines(),
                                 strict=True):
            there, here = (float(before.rsplit(" ||| ", 1)[1]),
                           float(re.search(r"Score= (-?[\d.]+)", after).group(1)))
            self.assertLessEqual(abs(here - there), 1e-5 * abs(there) + 1e-6, before)

    def source_pieces(self):
        """The test sentences in characters, which every vocabulary has."""
        return [" ".join(("\u2581" + line.decode().strip().replace(" ", "\u2581")))
                for line in self.lines[:10]]

    def test_summaries(self):
        pair = ["-t", self.home / "valid.en", self.home / "valid.de", "--quiet"]
        scores = [float(x) for x in output_of("nmt-score", "-m", self.model, *pair).split()]
        words = output_of("nmt-score", "-m", self.model, "--word-scores",
                          *pair).decode().splitlines()
        tokens = 0
        for score, line in zip(scores, words, strict=True):
            each = [float(x) for x in line.split(" ||| WordScores= ")[1].split()]
            tokens += len(each)
            self.assertAlmostEqual(sum(each), score, delta=1e-4)
        for option in ("--normalize", "--length-penalty", "--coverage-penalty"):
            self.refused(2, "nmt-score", "-m", self.model, option, "2",
                         "--summary", "cross-entropy", *pair, says=(option[2:], "summary is given"))
        self.refused(2, "nmt-score", "-m", self.model, "--word-scores", "--summary", "--",
                     *pair[1:3], says=["word-scores"])
        figure = lambda name: float(output_of("nmt-score", "-m", self.model,
                                              "--summary", name, *pair))
        total = -sum(scores)
        self.assertAlmostEqual(figure("ce-sum") / total, 1, delta=1e-5)
        self.assertAlmostEqual(figure("cross-entropy") / (total / len(scores)), 1, delta=1e-5)
        self.assertAlmostEqual(figure("ce-mean-words") / (total / tokens), 1, delta=1e-5)
        self.assertAlmostEqual(figure("perplexity") / 2.718281828459045 ** (total / tokens),
                               1, delta=1e-5)

    def test_a_pipe_is_answered_line_by_line(self):
        process = subprocess.Popen([str(BIN / "nmt-translate"), "-m", str(self.model), "--quiet"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        try:
            for line in self.lines[:3]:
                process.stdin.write(line)
                process.stdin.flush()
                ready, _, _ = select.select([process.stdout], [], [], SECONDS)
                self.assertTrue(ready, "no answer before the next line")
                self.assertEqual(os.read(process.stdout.fileno(), 100000), self.translate(line))
            process.stdin.close()
            self.assertEqual(process.wait(SECONDS), 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def test_what_is_wrong_is_one_line(self):
        missing, folder = self.home / "missing", self.home
        self.refused(2, "nmt-translate", "-m", missing, says=[missing])
        self.refused(2, "nmt-translate", says=["-m"])
        self.refused(2, "nmt-translate", "-m", self.model, "-i", missing, says=[missing])
        self.refused(2, "nmt-translate", "-m", self.model, "-i", folder, says=[folder])
        self.refused(2, "nmt-translate", "-m", self.model, "-o", folder, says=[folder])
        self.refused(2, "nmt-translate", "-m", self.model, "-o", missing / "out", says=[missing])
        self.refused(2, "nmt-translate", "-m", self.model, "--beam-size", "0", says=["beam-size"])
        self.refused(2, "nmt-translate", "-m", self.model, "--beam-siz", "3", says=["beam-size"])
        self.refused(2, "nmt-translate", "-m", self.model, "--weights", "0.5",
                     says=["without effect: weights (there is one model)"])
        for option, said in (
                ("--parts=2", "parts: has no meaning for a translation model"),
                ("--context=line", "context: has no meaning"),
                ("--n-best-feature=X", "without effect: n-best-feature (n-best is off)")):
            self.refused(2, "nmt-score", "-m", self.model, missing, missing, option, says=[said])
        settings = self.home / "c.yml"
        settings.write_text("beam-size: 2\nnormalize: 1\nlength-penalty: 1\n")
        self.refused(2, "nmt-translate", "-m", self.model, "-c", settings,
                     says=[f"error: {settings}:2: normalize 1 and length-penalty 1 exclude"])
        for lines in (b"", b"\n \n"):  # a score per line, but no summary of nothing
            (self.home / "blank").write_bytes(lines)
            pair = ["nmt-score", "-m", self.model, self.home / "blank", self.home / "blank"]
            self.assertEqual(run(*pair).stdout.count(b"\n"), lines.count(b"\n"))
            self.refused(3, *pair, "--summary", "perplexity", says=["no pair with text"])
        self.refused(2, "nmt-translate", "-m", self.model, "--normalize", "1",
                     "--length-penalty", "1", says=["normalize", "length-penalty"])
        self.refused(2, "nmt-score", "-m", self.model, missing, self.home / "test.de",
                     says=[missing])
        self.refused(2, "nmt-score", "-m", self.model, self.home / "test.de",
                     says=["test.de; expected two"])
        usage = (
            "usage: nmt-score MODEL SOURCE TARGET, for example nmt-score -m model test.en test.de")
        self.refused(2, "nmt-score", self.home / "test.en",
                     self.home / "test.de", says=[f"model: {self.home / 'test.en'} is a file, "
                                                  f"not a model directory; {usage}"])
        self.refused(2, "nmt-score", "-t", self.home / "test.en", self.home / "test.de",
                     says=[f"model: no directory given; {usage}"])
        self.refused(2, "nmt-score", says=[f"model: no directory given; {usage}"])
        self.refused(3, "nmt-score", "-m", self.model, self.home / "test.en",
                     self.home / "train.de", says=["test.en", "train.de"])
        self.refused(3, "nmt-score", "-m", self.model, self.home / "test.en", self.home / "test.de",
                     "--n-best", says=["test.de:1"])

    def test_words_that_nobody_asked_for_are_refused(self):
        text = self.home / "few.en"
        text.write_bytes(b"".join(self.lines[:2]))
        self.refused(2, "nmt-translate", "-m", self.model, "--alignment", "wrod", "-i", text,
                     says=["'wrod'", "follows --"])
        self.refused(2, "nmt-translate", "-m", self.model, "-n", "1,5", "-i", text, says=["'1,5'"])
        self.refused(2, "nmt-translate", "-m", self.model, "-b", "4", text, says=[text])
        self.refused(2, "nmt-explain", "-m", self.model, text, says=[text])
        self.refused(2, "nmt-translate", "-m", self.model, "--lm-weight", "1", "-i", text,
                     says=["lm-weight", "lm names its directory"])
        line = self.lines[0].decode().strip()
        self.assertEqual(output_of("nmt-translate", self.model, "--quiet", "--", line),
                         self.translate(self.lines[0]))
        self.assertEqual(output_of("nmt-translate", self.model, "--quiet", "--", "--beam", line),
                         self.translate(b"--beam\n" + self.lines[0]))

    def test_standard_input_is_read_once(self):
        self.refused(2, "nmt-score", "-m", self.model, "-", "-", stdin=self.lines[0],
                     says=["standard input"])
        self.refused(2, "nmt-bleu", "-", "-i", "-", stdin=self.lines[0], says=["standard input"])
        self.refused(2, "nmt-bleu", "-", stdin=self.lines[0], says=["standard input"])

    def test_links_that_lead_nowhere(self):
        (self.home / "round").symlink_to("round")
        self.refused(2, "nmt-translate", "-m", self.home / "round", says=["round"])
        self.refused(2, "nmt-score", "-m", self.home / "round", self.home / "test.en",
                     self.home / "test.de", says=["round"])

    def test_a_limit_of_the_file_size(self):
        limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "-", str(BIN / "nmt-translate"),
                   "-m", str(self.model), "-i", str(self.home / "train.en"),
                   "-o", str(self.home / "large"), "--quiet", "--max-length", "5",
                   "--beam-size", "1"]
        done = subprocess.run(limited, capture_output=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"File too large", done.stderr)

    def test_a_damaged_model(self):
        damaged = self.home / "damaged"
        shutil.copytree(self.model, damaged, symlinks=True)
        weights = next((damaged / "checkpoints").glob("*/model.safetensors"))
        for path in (damaged / "checkpoints").glob("*/model.safetensors"):
            path.write_bytes(path.read_bytes()[:-100])
        self.refused(3, "nmt-translate", "-m", damaged, "-o", self.home / "never",
                     stdin=self.lines[0], says=[weights.name])
        self.refused(3, "nmt-score", "-m", damaged, self.home / "test.en", self.home / "test.de",
                     says=[weights.name])
        self.assertEqual(list(self.home.glob("never*")), [])

    def test_a_reader_that_leaves(self):
        process = subprocess.Popen([str(BIN / "nmt-translate"), "-m", str(self.model), "--quiet",
                                    "--maxi-batch", "1"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        try:
            process.stdin.write(self.lines[0])
            process.stdin.close()
        except BrokenPipeError:
            pass
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(SECONDS), -signal.SIGPIPE)

    def test_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "wb") as full:
            result = run("nmt-translate", "-m", self.model, "--quiet", stdin=self.lines[0],
                         stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.decode().count("\n"), 1)
        self.assertIn("No space left", result.stderr.decode())


if __name__ == "__main__":
    for program in ("nmt-train", "nmt-translate", "nmt-score"):
        if not (BIN / program).exists():
            print(f"{BIN / program} is not built: skipped")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
