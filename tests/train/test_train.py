#!/usr/bin/env python3
"""nmt-train on text: it learns, validates as the other programs do, keeps development pairs apart,
and names bad input. Usage: test_train.py BIN_DIR [test names]"""
import json
import os
import re
import select
import signal
import subprocess
import unittest

from training_case import BIN, SMALL, events, make_corpus, run, TrainingCase


class TrainTest(TrainingCase):
    def test_validation_equals_the_programs(self):
        development = self.dir / "valid.en", self.dir / "valid.de"
        make_corpus(self.dir, 1000)
        self.train("m", "--after", "160u", "--valid-freq", "80u", "--no-tied-embeddings-all",
                   "--learn-rate", "0.01", "--lr-warmup", "20u", "--dim-emb", "48",
                   "--dim-rnn", "48", "--mini-batch-words", "600", "--dropout", "0",
                   "--valid-max-sentences", "0", "--valid-sets", *development)
        told = events(self.dir / "m", "validation")[-1]
        hypotheses = self.dir / "hyp"
        run("-m", self.dir / "m", "-i", development[0], "-o", hypotheses, tool="nmt-translate")
        for metric in ("bleu", "chrf"):
            score = run(development[1], "-i", hypotheses, "-m", metric, "-b", "-w", "10",
                        tool="nmt-bleu").stdout
            self.assertAlmostEqual(float(score), told[metric], places=9)
        self.assertGreater(told["chrf"], 10)
        score = run("-m", self.dir / "m", "-t", *development, "--summary", "perplexity",
                    tool="nmt-score").stdout
        self.assertAlmostEqual(float(score.split()[-1]), told["perplexity"],
                               delta=1e-3 * told["perplexity"])

    def test_learns(self):
        done = self.train("m", "--after", "150u", "--learn-rate", "0.01", "--dropout-emb", "0",
                          "--dropout-rnn", "0", "--dropout-readout", "0")
        first, last = (events(self.dir / "m", "display")[i]["perplexity"] for i in (0, -1))
        self.assertLess(last, first / 4)
        self.assertIn("nmt-translate -m", done.stdout + done.stderr)

    def test_nothing_but_two_files(self):
        done = subprocess.run([BIN / "nmt-train", self.en, self.de, "--after", "12u"], cwd=self.dir,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dim-rnn: 128 (chosen: ", done.stderr)
        self.assertIn("unit: gru (chosen: ", done.stderr)
        self.assertIn("tied-embeddings-all: true (chosen: one vocabulary for both sides)",
                      done.stderr)
        self.assertTrue((self.dir / "model" / "best" / "model.safetensors").exists())

    def test_development_pairs_are_never_trained_on(self):
        given = ["--valid-sets", self.dir / "valid.en", self.dir / "valid.de"]
        self.train("given", "--after", "10u", *given)
        done = self.train("given", "--after", "12u", status=2)
        self.assertRegex(done.stderr, r"valid-sets is \S+ \S+ there, not none")
        done = self.train("given", "--after", "12u", *given, "--seed", "7")  # of no hold-out
        self.assertIn("override seed: 1234 -> 7", done.stderr)
        self.train("held", "--after", "10u")
        for more in (["--seed", "7"], ["--valid-lines", "20"]):
            self.assertIn("it decides which pairs are held out",
                          self.train("held", "--after", "12u", *more, status=2).stderr)
        self.train("held", "--after", "12u", *given)
        self.assertIn("not none", self.train("held", "--after", "14u", status=2).stderr)

    def test_lines_too_long_for_the_vocabulary_are_told(self):
        for path in (self.en, self.de):
            with path.open("a", encoding="utf-8") as file:
                file.write("word " * 1000 + "\n")
        done = self.train("m", "--after", "2u", "--valid-lines", "10")
        self.assertRegex(done.stderr, r"joint vocabulary: 200 pieces from \d+ lines, "
                                      r"2 lines over 4096 bytes skipped")

    def test_cropped_development_lines_are_told_once(self):
        sources, targets = self.dir / "long.en", self.dir / "long.de"
        sources.write_text("one\ntwo\n" + "three " * 9 + "\nfour\n" + "five " * 20 + "\n",
                           encoding="utf-8")
        targets.write_text("eins\nzwei\ndrei\nvier\nf\u00fcnf\n", encoding="utf-8")
        words = ["--vocab-type", "words", "--valid-max-length", "8", "--after", "20u"]
        done = self.train("m", *words, "--valid-sets", sources, targets)
        self.assertEqual([line for line in done.stderr.splitlines() if "8 tokens" in line],
                         [f"warning: {sources}: 2 of 5 lines have more than 8 tokens, "
                          "the first is line 3; "
                          "validations translate only the first 8 tokens (--valid-max-length)"])
        self.assertEqual(len(events(self.dir / "m", "validation")), 2)
        done = self.train("entropy", *words, "--valid-sets", sources, targets,
                          "--valid-metrics", "cross-entropy")
        self.assertNotIn("8 tokens", done.stderr)
        # Held-out pairs are lines of the training text.
        lines = ["word " * 9 for _ in self.en.read_text(encoding="utf-8").splitlines()]
        lines[0] = "word"
        self.en.write_text("".join(f"{line} {i}\n" for i, line in enumerate(lines)),
                           encoding="utf-8")
        done = self.train("held out", *words, "--no-joint-vocab")
        self.assertIn(f"translate with: nmt-translate -m '{self.dir / 'held out'}' < INPUT",
                      done.stderr)
        number = re.search(rf"{re.escape(str(self.en))}: .* lines have more than 8 tokens, "
                           r"the first is line (\d+);", done.stderr)[1]
        held = json.loads(
            (self.dir / "held out" / "development.json").read_text(encoding="utf-8"))["sources"]
        self.assertTrue(held[0].endswith(f" {int(number) - 1}"), (held[0], number))

    def test_a_development_set_without_text_is_named(self):
        sources, targets = self.dir / "blank.en", self.dir / "blank.de"
        sources.write_text("one\n\n", encoding="utf-8")
        targets.write_text("\nzwei\n", encoding="utf-8")
        done = self.train("m", "--valid-sets", sources, targets, status=3)
        self.assertIn(f"error: {sources} and {targets}: the development set has no pair with text "
                      "on both sides\n", done.stderr)

    def test_a_model_that_cannot_be_made_is_refused_before_a_vocabulary_is_trained(self):
        for task in ((), ("--task", "language-model")):
            files = [self.en] if task else [self.en, self.de]
            done = run(*files, *task, "--model", self.dir / "bad", "--unit", "gla",
                       "--dim-rnn", "50", "--state-heads", "4", status=2)
            self.assertRegex(done.stderr, r"error: .*state-heads: 4 does not divide the width 50")
            self.assertNotIn("pieces from", done.stderr)

    def test_an_interrupt_is_answered_on_a_terminal(self):
        ours, theirs = os.openpty()
        command = [BIN / "nmt-train", self.en, self.de, "--model", self.dir / "m", *SMALL,
                   "--after", "100000u"]
        process = subprocess.Popen([str(word) for word in command], stderr=theirs,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        os.close(theirs)
        told = b""
        for text in (b"saved update 10 ", b"Ctrl-C again stops at once", b"stopped at update"):
            while text not in told:
                self.assertTrue(select.select([ours], [], [], 120)[0], told)
                try:
                    told += os.read(ours, 4096)
                except OSError:  # the program ended
                    self.fail(told)
            if text == b"saved update 10 ":
                process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        os.close(ours)

    def test_bad_input_is_one_line(self):
        empty = self.dir / "empty"
        empty.write_text("")
        short = self.dir / "short"
        short.write_text("a\nb\n")
        typo = self.dir / "typo.yml"
        typo.write_text("dim-embb: 32\n")
        kind = self.dir / "kind.yml"
        kind.write_text("dim-emb: wide\n")
        broken = self.dir / "broken.yml"
        broken.write_text("dim-emb: [\n")
        m = ["--model", self.dir / "bad"]
        cases = [
            (2, [self.dir / "missing.en", self.de, *m], "missing.en"),
            (2, [self.dir, self.de, *m], str(self.dir)),
            (3, [empty, empty, *m], "empty"),
            (3, [self.en, short, *m], "short"),
            (2, [self.en, *m], "train-sets"),
            (2, [self.en, self.de, *m, "--dim-embb", "32"], "dim-emb"),
            (2, [self.en, self.de, *m, "--dim-emb", "wide"], "wide"),
            (2, [self.en, self.de, *m, "-c", typo], "dim-emb"),
            (2, [self.en, self.de, *m, "-c", kind], "wide"),
            (2, [self.en, self.de, *m, "-c", broken], "broken.yml"),
            (2, [self.en, self.de, *m, "--after", "10x"], "10x"),
            (2, [self.en, self.de, *m, "--schedule", "cosine"], "cosine"),
            (2, [self.en, self.de, *m, "--valid-metrics", "meteor"], "meteor"),
            (2, [self.en, self.de, *m, "--enc-cell", "lstmm"], "lstm"),
        ]
        for status, args, word in cases:
            with self.subTest(args=[str(a) for a in args]):
                done = run(*args, status=status)
                errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
                self.assertEqual(len(errors), 1, done.stderr)
                self.assertIn(word, errors[0])
                self.assertFalse((self.dir / "bad").exists())


if __name__ == "__main__":
    unittest.main()
