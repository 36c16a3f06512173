#!/usr/bin/env python3
"""Language models from end to end: training, resuming, perplexity against numpy, shallow fusion,
ranking, bad input. Usage: test_language_model.py BIN_DIR [test names]"""
import json
import math
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["--task", "language-model", "--dim-emb", "12", "--dim-rnn", "12", "--dec-depth", "1",
         "--mini-batch", "4", "--bptt", "7", "--cpu-threads", "2", "--products", "own",
         "--disp-freq", "10u", "--valid-freq", "10u", "--save-freq", "10u", "--early-stopping", "0",
         "--learn-rate", "0.01", "--lr-warmup", "0u", "--vocab-type", "words"]


def run(tool, *args, status=0, stdin=None):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, text=True,
                          timeout=300, input=stdin)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{tool} {' '.join(map(str, args))}: status {done.returncode}, "
                             f"not {status}\n{done.stdout}{done.stderr}")
    return done


def make_text(path, lines, seed, words=tuple("abcdefgh")):
    """Sentences of a Markov chain: every word has two likely successors."""
    draw = random.Random(seed)
    text = []
    for _ in range(lines):
        at, sentence = draw.randrange(len(words)), []
        for _ in range(draw.randint(1, 9)):
            sentence.append(words[at])
            at = ((2 * at + draw.randrange(2)) % len(words) if draw.random() < 0.9
                  else draw.randrange(len(words)))
        text.append(" ".join(sentence))
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def tensors(model):
    """The tensors of the published checkpoint, read without the code under test."""
    import numpy as np
    data = ((model / "best") if (model / "best").exists()
            else (model / "latest")) / "model.safetensors"
    raw = data.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    body = raw[8 + size:]
    return {name: np.frombuffer(body[d["data_offsets"][0]:d["data_offsets"][1]],
                                dtype="<f4").reshape(d["shape"]).astype(np.float64)
            for name, d in header.items() if name != "__metadata__"}


def words_of(model):
    """The words of a vocabulary of type WORD, from its protocol buffer."""
    raw = (model / "vocab.spm").read_bytes()
    names, at = [], 0
    while at < len(raw) and raw[at] == 0x0A:
        size = raw[at + 1]
        piece = raw[at + 2:at + 2 + size]
        names.append(piece[2:2 + piece[1]].decode("utf-8").replace("\u2581", ""))
        at += 2 + size
    return names


def weights(model):
    return ((model / "latest" / "model.safetensors").read_bytes(),
            (model / "latest" / "state.safetensors").read_bytes())


def events(model, kind):
    lines = (model / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == kind]


class LanguageModelTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nmt-lm-test-"))
        self.text = make_text(self.dir / "train.txt", 300, 1)
        self.valid = make_text(self.dir / "valid.txt", 40, 2)

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def train(self, name, *more, status=0, text=None):
        return run("nmt-train", text or self.text, "--model", self.dir / name,
                   "--valid-sets", self.valid, *SMALL, *more, status=status)

    def test_resume_is_bit_exact(self):
        options = ["--unit", "lstm", "--dropout-emb", "0.1", "--dropout-weights", "0.3",
                   "--optimizer", "sgd", "--average-after", "1", "--learn-rate", "3"]
        self.train("whole", *options, "--after", "90u")
        for after in ("35u", "70u", "90u"):
            self.train("parts", *options, "--after", after)
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "parts"))
        self.assertIn(b"stream.layer_0.1", weights(self.dir / "whole")[1])
        for name in ("whole", "parts"):
            self.assertEqual(len(events(self.dir / name, "average")), 1, name)
        # Another task cannot go on in the directory.
        done = run("nmt-train", self.text, self.text, "--model", self.dir / "whole", status=2)
        self.assertRegex(done.stderr, "task")

    def test_large_batches_resume(self):
        """Streams times steps exceed what mini-batch-words may be."""
        large = ["--mini-batch", "1001", "--bptt", "100000", "--valid-freq", "100u"]
        self.train("m", *large, "--after", "1u")
        self.train("m", *large, "--after", "2u")
        self.assertEqual(events(self.dir / "m", "end")[-1]["updates"], 2)

    def test_lines_too_long_for_the_vocabulary_are_told(self):
        with self.text.open("a", encoding="utf-8") as file:
            file.write("word " * 1000 + "\n")
        done = self.train("m", "--vocab-type", "sentencepiece", "--dim-vocabs", "60",
                          "--after", "1u")
        self.assertRegex(done.stderr, r"\nvocabulary: \d+ pieces from 300 lines, "
                                      r"1 lines over 4096 bytes skipped\n")

    def test_perplexity_is_numpys(self):
        import numpy as np
        model = self.dir / "lrn"
        self.train("lrn", "--unit", "lrn", "--no-layer-normalization", "--lm-output", "tanh",
                   "--dec-depth", "2", "--after", "300u", "--valid-freq", "100u",
                   "--save-freq", "100u")
        self.valid.write_text(self.valid.read_text() + "a unseen <unk> b\n\nc d\n",
                              encoding="utf-8")
        t, names = tensors(model), words_of(model)
        self.assertEqual(names[:3], ["<unk>", "<s>", "</s>"])
        ids = {name: i for i, name in enumerate(names)}

        def sigmoid(x):
            return 1 / (1 + np.exp(-x))

        table, h = t["decoder.embedding"], [np.zeros(12), np.zeros(12)]
        total, count, last, scores = 0.0, 0, 2, []
        for line in self.valid.read_text(encoding="utf-8").splitlines():
            if not line:
                scores.append(0.0)
                continue
            score = 0.0
            for target in [ids.get(word, 0) for word in line.split()] + [2]:
                x = table[last]
                for k in range(2):
                    q, i, v = np.split(x @ t[f"decoder.layer_{k}.input_projection"]
                                       + t[f"decoder.layer_{k}.input_projection_bias"], 3)
                    h[k] = np.tanh(sigmoid(i + h[k]) * v + sigmoid(q - h[k]) * h[k])
                    x = h[k]
                y = np.tanh(x @ t["decoder.readout"] + t["decoder.readout_bias"])
                logits = table @ y + t["decoder.output_bias"]
                score += (logits[target] - logits.max()
                          - math.log(np.exp(logits - logits.max()).sum()))
                last, count = target, count + 1
            scores.append(score)
            total -= score
        done = run("nmt-score", "-m", model, self.valid)
        found = [float(x) for x in done.stdout.split()]
        self.assertEqual(len(found), len(scores))
        for a, b in zip(found, scores):
            self.assertAlmostEqual(a, b, delta=2e-4)
        expected = math.exp(total / count)
        printed = float(run("nmt-score", "-m", model, self.valid, "--summary", "perplexity").stdout)
        self.assertAlmostEqual(printed, expected, delta=1e-4 * expected)
        low, high = map(float,
                        re.search(r"95 % interval ([\d.]+) to ([\d.]+)", done.stderr).groups())
        self.assertLess(low, expected)
        self.assertGreater(high, expected)
        self.assertLess(expected, 9)  # of 9 symbols: it has learned something

    def test_validation_is_what_nmt_score_prints(self):
        self.train("v", "--unit", "gru", "--after", "30u")
        best = min(e["perplexity"] for e in events(self.dir / "v", "validation"))
        printed = run("nmt-score", "-m", self.dir / "v", self.valid, "--summary", "perplexity",
                      "--parts", "16").stdout
        self.assertAlmostEqual(float(printed), best, delta=1e-6 * best)

    def test_subwords_are_normalized_to_words(self):
        words = ("abcd", "bcda", "acbd", "dcba")
        text = make_text(self.dir / "long.txt", 300, 3, words)
        self.train("pieces", "--vocab-type", "sentencepiece", "--dim-vocabs", "9",
                   "--after", "10u", text=text)
        done = run("nmt-score", "-m", self.dir / "pieces", text, "--word-scores")
        lines = text.read_text(encoding="utf-8").splitlines()
        nats = -sum(float(line.split()[0]) for line in done.stdout.splitlines())
        count = sum(len(line.split()) + 1 for line in lines)
        printed = float(run("nmt-score", "-m", self.dir / "pieces", text,
                            "--summary", "perplexity").stdout)
        self.assertAlmostEqual(printed, math.exp(nats / count), delta=1e-4 * printed)
        pieces = [len(line.split("WordScores=")[1].split()) for line in done.stdout.splitlines()]
        self.assertGreater(sum(pieces), count)

    def test_difference_of_two_models_ranks(self):
        other = make_text(self.dir / "other.txt", 300, 5, tuple("acegbdfh"))
        self.train("in", "--after", "120u")
        self.train("out", "--after", "120u", text=other)
        pool = self.dir / "pool.txt"
        mine, theirs = (make_text(self.dir / "p", 30, 7),
                        make_text(self.dir / "q", 30, 8, tuple("acegbdfh")))
        pool.write_text(mine.read_text() + theirs.read_text())
        scores = [float(x) for x in run("nmt-score", "-m", self.dir / "in", self.dir / "out",
                                        "-t", pool).stdout.split()]
        self.assertEqual(len(scores), 60)
        self.assertGreater(sum(scores[:30]) / 30, sum(scores[30:]) / 30 + 0.3)
        alone = [[float(x) for x in run("nmt-score", "-m", self.dir / name, pool,
                                        "--context", "line").stdout.split()]
                 for name in ("in", "out")]
        for line, a, b, difference in zip(pool.read_text().splitlines(), *alone, scores):
            self.assertAlmostEqual(difference, (a - b) / (len(line.split()) + 1), delta=2e-6)

    def test_shallow_fusion(self):
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "300",
                        "--valid", "30", "--test", "20", self.dir / "toy"], check=True)
        toy, model, lm = self.dir / "toy", self.dir / "mt", self.dir / "lm"
        run("nmt-train", toy / "train.en", toy / "train.de", "--model", model, "--dim-emb", "16",
            "--dim-rnn", "16", "--enc-depth", "1", "--dec-depth", "1",
            "--vocab-type", "words", "--dim-vocabs", "200", "--learn-rate", "0.01",
            "--lr-warmup", "20u", "--after", "150u", "--valid-freq", "150u",
            "--valid-max-sentences", "5", "--cpu-threads", "2", "--mini-batch-words", "200")
        run("nmt-train", toy / "train.de", *SMALL, "--vocabs", model / "vocab.spm",
            "--after", "40u", "--model", lm, "--unit", "lstm")
        source = toy / "test.en"

        def translate(*more):
            return run("nmt-translate", "-m", model, "-i", source, "--n-best",
                       "--length-penalty", "0", *more).stdout

        plain, fused = translate(), translate("--lm", lm, "--lm-weight", "0.5")
        self.assertNotEqual(plain, fused)
        self.assertEqual(translate("--lm", lm, "--lm-weight", "0"), plain)
        # The same for every batch and number of workers.
        for same in (["--mini-batch", "1"], ["--mini-batch", "7", "--maxi-batch-sort", "none"],
                     ["--workers", "2"]):
            self.assertEqual(translate("--lm", lm, "--lm-weight", "0.5", *same), fused)
        run("nmt-convert", model, self.dir / "mt8", "--no-check")
        of_workers = [run("nmt-translate", "-m", self.dir / "mt8", "-i", source, "--n-best",
                          "--lm", lm, "--mini-batch", "4", "--workers", n).stdout for n in "12"]
        self.assertEqual(*of_workers)
        # Settings that contradict each other are damage of the directory.
        settings = self.dir / "mt8/config.json"
        settings.write_text(json.dumps((read := json.loads(settings.read_text()))
                                       | {"model": read["model"] | {"heads": 5}}))
        for command in (("nmt-translate",), ("nmt-info",),
                        ("nmt-convert", "-o", self.dir / "none", "--no-check",
                         "--precision", "float32", "-m")):
            done = run(*command, self.dir / "mt8", stdin="x\n", status=3)
            self.assertIn(f"{settings}: heads", done.stderr)
        # A score is log p of the translation model + W log p of the language model. Words have one
        # segmentation. nmt-score gives an empty line no score.
        parts = [part for part in (line.split(" ||| ") for line in fused.splitlines())
                 if part[1].strip()]
        self.assertGreater(len(parts), 20)
        scores = [float(p[-1]) for p in parts]
        sources = source.read_text(encoding="utf-8").splitlines()
        (self.dir / "s").write_text("".join(sources[int(p[0])] + "\n" for p in parts),
                                    encoding="utf-8")
        (self.dir / "t").write_text("".join(p[1] + "\n" for p in parts), encoding="utf-8")
        mt = [float(x) for x in run("nmt-score", "-m", model, "-t", self.dir / "s",
                                    self.dir / "t").stdout.split()]
        of_lm = [float(x) for x in run("nmt-score", "-m", lm, self.dir / "t",
                                       "--context", "line").stdout.split()]
        self.assertEqual(len(scores), len(of_lm))
        for a, b, score in zip(mt, of_lm, scores):
            self.assertAlmostEqual(a + 0.5 * b, score, delta=1e-3)
        # Errors.
        self.train("words", "--after", "1u")
        done = run("nmt-translate", "-m", model, "--lm", self.dir / "words", stdin="x\n", status=2)
        self.assertIn("has another vocabulary", done.stderr)
        done = run("nmt-translate", "-m", model, "--lm", model, stdin="x\n", status=2)
        self.assertIn("is a translation model; expected a language model", done.stderr)
        done = run("nmt-translate", "-m", lm, stdin="x\n", status=2)
        self.assertIn("is a language model; expected a translation model", done.stderr)
        done = run("nmt-translate", "-m", model, "--lm", lm, "--ensemble", "probabilities",
                   stdin="x\n", status=2)
        self.assertIn("lm:", done.stderr)

    def test_info_counts_the_weights(self):
        self.train("i", "--unit", "lstm", "--no-layer-normalization", "--dec-depth", "2",
                   "--lm-output", "tanh", "--after", "1u")
        of_file = {name: values.size for name, values in tensors(self.dir / "i").items()}
        json_of = lambda *args: json.loads(run("nmt-info", *args, "--json").stdout)  # noqa: E731
        found = json_of("-m", self.dir / "i")
        self.assertEqual(found["task"], "language-model")
        self.assertEqual(found["parameters"]["total"], sum(of_file.values()))
        self.assertEqual(found["parameters"]["embeddings"], of_file["decoder.embedding"])
        words = found["vocabulary"]
        self.assertEqual(words, len(words_of(self.dir / "i")))
        # Per token and layer: 4 planes of input and state; the layer before the softmax,
        # and the softmax.
        self.assertEqual(found["products"]["token"], 2 * 4 * 2 * 12 * 12 + 12 * 12 + 12 * words)
        self.assertEqual(found["memory"]["training"]["gradients"], 4 * found["parameters"]["total"])
        self.assertEqual(found["memory"]["training"]["optimizer"], 8 * found["parameters"]["total"])
        same = json_of("--task", "language-model", "--dim-emb", 12, "--dim-rnn", 12,
                       "--dec-depth", 2, "--dim-vocabs", words, "--unit", "lstm",
                       "--no-layer-normalization", "--lm-output", "tanh")
        self.assertEqual({**found, "origin": ""}, {**same, "origin": ""})
        text = run("nmt-info", "-m", self.dir / "i").stdout
        self.assertIn("language model, 2 layers, widths 12 (embeddings) and 12 (units), "
                      "output tanh", text)
        self.assertIn("dim-rnn: not set",
                      run("nmt-info", "--task", "language-model", "--dim-emb", 8, status=2).stderr)
        # Options of translation models have no effect, as in nmt-train.
        idle = run("nmt-info", "--task", "language-model", "--dim-emb", 12, "--dim-rnn", 12,
                   "--dec-depth", 1, "--dim-vocabs", words, "--unit", "lstm",
                   "--upper-context=false", status=2)
        self.assertIn("without effect: upper-context (task is language-model)", idle.stderr)
        self.assertIn("sentence-length: the memory estimate of a language model has no activations",
                      run("nmt-info", "-m", self.dir / "i", "--sentence-length", 7,
                          status=2).stderr)

    def test_perplexity_beyond_float64(self):
        """Text without spaces: two words a line, of more than 709 nats."""
        draw = random.Random(3)
        for path, lines in ((self.text, 30), (self.valid, 4)):
            path.write_text("".join("".join(draw.choices("abcdefgh", k=1000)) + "\n"
                                    for _ in range(lines)), encoding="utf-8")
        options = SMALL[:SMALL.index("--vocab-type")] + ["--dim-vocabs", "16", "--after", "10u"]
        done = run("nmt-train", self.text, "--model", self.dir / "p", "--valid-sets", self.valid,
                   *options, status=1)
        self.assertRegex(done.stderr, r"the perplexity per word is too large for float64 "
                         r"\(cross-entropy \d+\.\d\); use --valid-metrics cross-entropy")
        run("nmt-train", self.text, "--model", self.dir / "h", "--valid-sets", self.valid,
            *options, "--valid-metrics", "cross-entropy", "perplexity")
        validation = events(self.dir / "h", "validation")[0]
        self.assertGreater(validation["cross-entropy"], 709)
        self.assertTrue(validation["best"])
        done = run("nmt-convert", "-m", self.dir / "h", "-o", self.dir / "h8", "--check",
                   self.valid, "--tolerance", 50)
        self.assertRegex(done.stderr, r"perplexity inf in float32, inf in int8 \([-+][\d.]+ %\)")

    def test_convert_checks_the_perplexity(self):
        import numpy as np
        model, small = self.dir / "c", self.dir / "c8"
        self.train("c", "--unit", "gru", "--after", "200u", "--valid-freq", "100u",
                   "--save-freq", "100u")
        self.assertIn("needs --check TEXT",
                      run("nmt-convert", "-m", model, "-o", small, status=2).stderr)
        self.assertIn("beam-size (language models are checked by their perplexity)",
                      run("nmt-convert", "-m", model, "-o", small, "--check", self.valid,
                          "--beam-size", 2, status=2).stderr)
        done = run("nmt-convert", "-m", model, "-o", small, "--check", self.valid, "--tolerance", 0,
                   "--precision", "bfloat16", status=None)
        rises = re.search(r"\(([-+])[\d.]+ %\)", done.stderr)[1] == "+"
        self.assertEqual(done.returncode, 1 if rises else 0, done.stderr)
        self.assertEqual(small.exists(), not rises)
        shutil.rmtree(small, ignore_errors=True)
        done = run("nmt-convert", "-m", model, "-o", small, "--check", self.valid,
                   "--tolerance", 20, "--check-sentences", 1000)
        before, after = map(float, re.search(r"perplexity ([\d.]+) in float32, ([\d.]+) in int8",
                                             done.stderr).groups())
        # noqa: E731
        perplexity = lambda which: float(run("nmt-score", "-m", which, self.valid,
                                             "--summary", "perplexity").stdout)
        self.assertAlmostEqual(perplexity(model), before, delta=0.006)
        self.assertAlmostEqual(perplexity(small), after, delta=0.006)
        # Of two models, each is scored in its own precision.
        done = run("nmt-score", "-m", model, small, self.valid)
        self.assertIn(f"{small}: int8\n", done.stderr)
        alone = [list(map(float, run("nmt-score", "-m", which, self.valid, "--context",
                                     "line").stdout.split())) for which in (model, small)]
        lines = self.valid.read_text().splitlines()
        for line, a, b, difference in zip(lines, *alone, map(float, done.stdout.split())):
            self.assertAlmostEqual(difference, (a - b) / (len(line.split()) + 1), delta=2e-6)
        self.assertEqual(json.loads(run("nmt-info", "-m", small, "--json").stdout)["precision"],
                         "int8")
        # Back in float32: every weight is a whole number of its column's or row's steps.
        run("nmt-convert", "-m", small, "-o", self.dir / "c32", "--precision", "float32")
        table, back = (tensors(model)["decoder.embedding"],
                       tensors(self.dir / "c32")["decoder.embedding"])
        self.assertLessEqual(np.abs(table - back).max(), np.abs(table).max(axis=1).max() / 127)
        self.assertGreater(np.abs(table - back).max(), 0)
        self.assertEqual(run("nmt-convert", "-m", model, "-o", self.dir / "c16",
                             "--precision", "bfloat16", "--no-check").returncode, 0)

    def test_report(self):
        self.train("r", "--unit", "gru", "--after", "30u")
        run("nmt-report", self.dir / "r", "-o", self.dir / "r.html", "--json", self.dir / "r.json")
        report = json.loads((self.dir / "r.json").read_text(encoding="utf-8"))
        self.assertEqual(report["task"], "language-model")
        self.assertEqual(report["model"]["summary"],
                         "language model, gru, embeddings of 12 and states of 12, 1 layer")
        logged = [e["perplexity"] for e in events(self.dir / "r", "validation")]
        self.assertEqual(report["validations"]["metrics"]["perplexity"], logged)
        self.assertEqual(report["best"]["value"], min(logged))
        self.assertEqual(report["runs"][0]["data"]["tokens"],
                         sum(len(line.split()) + 1 for line in self.text.read_text().splitlines()))
        self.assertIn("</html>", (self.dir / "r.html").read_text(encoding="utf-8"))

    def test_scores_that_are_not_finite(self):
        damaged = self.dir / "not-finite"
        self.train("not-finite", "--after", "2u")
        lines = ["a b", "c d", "a h"]  # the state after h is not finite
        data = (damaged / "latest").resolve() / "model.safetensors"
        raw = bytearray(data.read_bytes())
        (size,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8:8 + size])
        row = 12 * 4 * words_of(damaged).index("h")
        begin = 8 + size + header["decoder.embedding"]["data_offsets"][0] + row
        raw[begin:begin + 4] = struct.pack("<f", math.nan)
        data.write_bytes(raw)
        manifest = data.with_name("manifest.json")
        record = json.loads(manifest.read_text())
        record["files"][data.name]["crc32"] = zlib.crc32(raw)
        manifest.write_text(json.dumps(record))
        text = self.dir / "not-finite.txt"
        text.write_text("\n".join(lines) + "\n")
        for options in ([], ["--summary", "perplexity"]):
            done = run("nmt-score", damaged, text, *options, status=1)
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr.splitlines()[-1],
                             r"^error: .*not-finite.txt: line [123]: the score of .* is -?nan: "
                             r".*--context line")

    def test_bad_input(self):
        dirty = self.dir / "dirty.txt"
        dirty.write_bytes(b"\xef\xbb\xbfa b c\r\n\n  \na \xff b\na\x00b c\n" + b"c d e f g h\n" * 40
                          + b"last line")
        done = self.train("dirty", "--after", "3u", text=dirty)
        self.assertIn("blank lines", done.stderr)
        self.assertIn("invalid UTF-8", done.stderr)
        lines = dirty.read_bytes().count(b"\n") + 1
        self.assertEqual(len(run("nmt-score", "-m", self.dir / "dirty", dirty).stdout.splitlines()),
                         lines)
        empty = self.dir / "empty.txt"
        empty.write_text("")
        blank = self.dir / "blank.txt"
        blank.write_text("\n \n\n")
        short = self.dir / "short.txt"
        short.write_text("a b\n")
        for text, status, said in ((empty, 3, "is empty"), (blank, 3, "no text"),
                                   (short, 3, "fewer than the 4 streams"),
                                   (self.dir, 2, "directory"),
                                   (self.dir / "none", 2, "none")):
            done = self.train("bad", text=text, status=status, *(["--mini-batch", "4"]))
            self.assertIn(said, done.stderr.splitlines()[-1])
            self.assertFalse((self.dir / "bad").exists())
        for options, said in ((["--valid-metrics", "bleu"], "no metric of a language model"),
                              (["--lm-output", "none", "--dim-emb", "8"], "dim-emb"),
                              (["--average-after", "2", "--exponential-smoothing", "0.1"],
                               "two averages")):
            self.assertIn(said, self.train("bad", *options, status=2).stderr)
            self.assertFalse((self.dir / "bad").exists())
        self.assertIn("needs one", run("nmt-train", "--task", "language-model", self.text,
                                       self.text, status=2).stderr)
        self.assertIn("without effect: noise (task is language-model)",
                      self.train("noise", "--noise", "0.1", "--after", "1u").stderr)
        self.assertIn(f"score with: nmt-score -m '{self.dir / 'two words'}' TEXT",
                      self.train("two words", "--after", "1u").stderr)
        self.assertIn("without effect: enc-depth (task is language-model);",
                      self.train("idle", "--enc-depth", "3", "--unit", "gru", "--after", "1u",
                                 status=2).stderr)
        done = run("nmt-explain", "-m", self.dir / "dirty", "--text", "x", status=2)
        self.assertIn("is a language model; expected a translation model", done.stderr)
        model = self.dir / "dirty"
        for text, scores in ((blank, "0.000000\n" * 3), (empty, "")):  # one score per line
            done = run("nmt-score", "-m", model, text)
            self.assertEqual(done.stdout, scores)
            self.assertIn("no line with text", done.stderr)
            self.assertIn("no line with text",
                          run("nmt-score", "-m", model, text, "--summary", status=3).stderr)
        # the directory is the error, not what a translation model lacks
        for given in ([short], [short, "--context", "line"], ["--summary", "perplexity"]):
            self.assertIn("nosuch",
                          run("nmt-score", "-m", self.dir / "nosuch", *given, status=2).stderr)
        invisible = self.dir / "invisible.txt"  # text without a token
        invisible.write_text("\u200b\n", encoding="utf-8")
        self.assertIn("invisible.txt: no line has text",
                      run("nmt-train", self.text, "--model", self.dir / "bad",
                          "--valid-sets", invisible, *SMALL[:-2], status=3).stderr)
        self.assertIn("scores one",
                      run("nmt-score", "-m", model, "-t", self.text, self.text, status=2).stderr)
        for models, options, said in (([model], ["--n-best"], "no meaning"),
                                      ([model], ["--workers", "2"], "workers: has no meaning"),
                                      ([model, model], ["--parts", "5"],
                                       "parts: 5 requires context=text and one model")):
            self.assertIn(said, run("nmt-score", "-m", *models, "-t", self.text, *options,
                                    status=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
