#!/usr/bin/env python3
"""Settings of nmt-train: what it chooses, what it dumps, what has no effect, and how gates start.
Usage: test_settings.py BIN_DIR [test names]"""
import json
import re
import shutil
import unittest

from training_case import SMALL, run, weights, TrainingCase


class SettingsTest(TrainingCase):
    def test_texts_behind_the_option_of_a_list_are_explained(self):
        settings = self.dir / "s.yml"
        settings.write_text("dim-emb: 16\n", encoding="utf-8")
        done = run("-c", settings, self.en, self.de, status=2)
        self.assertIn("takes all up to the next option", done.stderr)

    def test_the_unit_is_chosen_once(self):
        """A resumed training keeps its unit, whether it was chosen or given; one side may
        be named alone."""
        often = [o for name in ("--valid-freq", "--save-freq") for o in (name, "2u")]
        plain = ["--valid-metrics", "cross-entropy", *often]
        for name, options, units in (("chosen", [], ["gru", "gru"]),
                                     ("given", ["--unit", "lrn"], ["lrn", "lrn"]),
                                     ("one", ["--dec-cell", "sru"], ["lrn", "sru"])):
            done = self.train(name, *plain, *options, "--after", "2u")
            self.assertEqual("unit: gru (chosen: " in done.stderr, name == "chosen")
            spec = (
                json.loads((self.dir / name / "config.json").read_text(encoding="utf-8"))["model"])
            self.assertEqual([spec["enc-cell"], spec["dec-cell"]], units)
            done = self.train(name, *plain, "--after", "4u")
            self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])
        done = self.train("chosen", *plain, "--dec-cell", "sru", "--after", "6u", status=2)
        self.assertIn("dec-cell is gru there, not sru", done.stderr)
        self.assertNotIn("enc-cell", done.stderr)

    def test_a_full_dump_has_what_was_chosen(self):
        """Also choices that depend on what is not set, as the average of weights; a side whose unit
        has its default is a comment."""
        dump = self.train("d", "--dump-config", "full", "--dec-cell", "sru").stdout
        self.assertRegex(dump, r"(?m)^# enc-cell: ")
        self.assertRegex(dump, r"(?m)^dec-cell: sru$")
        plain = [self.en, self.de, *SMALL[:SMALL.index("--exponential-smoothing")],
                 "--after", "10u"]
        run(*plain, "--model", self.dir / "d")
        dump = run(*plain, "--model", self.dir / "e", "--dump-config", "full").stdout
        for choice in ("dec-cell: gru", "tied-embeddings-all: true",
                       r"exponential-smoothing: 0\.001"):
            self.assertRegex(dump, f"(?m)^{choice}$")
        (self.dir / "full.yml").write_text(dump, encoding="utf-8")
        run("--config", self.dir / "full.yml")
        self.assertEqual(weights(self.dir / "d"), weights(self.dir / "e"))

    def test_options_without_effect_are_those_of_the_chosen_unit(self):
        options = {"--dropout-state": "0.1", "--activation": "identity", "--positions": "9",
                   "--rearrange": "true", "--bias": "true", "--upper-context": "false"}
        typed = [word for option in options.items() for word in ("=".join(option),)]
        said = ("options without effect: activation (unit gru has no such variant), "
                "positions (unit gru has no position vectors), "
                "bias (layer-normalization has one), rearrange (groups is 1), upper-context "
                "(dec-depth is 1)")
        done = self.train("typed", "--after", "2u", *typed, status=2)
        self.assertEqual(done.stderr.splitlines()[-1], f"error: {said}; leave them out")
        self.assertFalse((self.dir / "typed").exists())
        # A configuration file may serve several models.
        (self.dir / "c.yml").write_text(
            "".join(f"{name[2:]}: {value}\n" for name, value in options.items()), encoding="utf-8")
        done = self.train("file", "--after", "2u", "--config", self.dir / "c.yml")
        self.assertIn(f"warning: {said}\n", done.stderr)
        self.train("positions", "--after", "2u", "--unit", "elstm1", "--positions", "9")

    def test_usage_errors_come_before_the_vocabulary(self):
        """Of the optimizer, of the schedule and of metrics; training a vocabulary takes minutes."""
        lm = [self.en, "--task", "language-model", "--vocab-type", "words", "--bptt", "8"]
        translation = [self.en, self.de, *SMALL[:SMALL.index("--exponential-smoothing")]]
        (self.dir / "none.yml").write_text("valid-metrics: []\n", encoding="utf-8")
        for task, more, said in (
                (translation, ["--optimizer-params", "2"], "optimizer-params: beta1 is 2"),
                (translation, ["--learn-rate", "0.1", "--lr-floor", "1"], "lr-floor: 1 is not in"),
                (translation, ["--lr-cooldown", "0.5", "--after", "0"], "the training has no end"),
                (translation, ["--average-after", "2", "--exponential-smoothing", "0.1"],
                 "two averages"),
                (translation, ["--schedule", "rnmt+", "--rnmt-schedule", "1", "2"],
                 "rnmt-schedule: 2 numbers"),
                (translation, ["--vocab-type", "words", "--bpe-dropout", "0.1"],
                 "bpe-dropout 0.1: needs a vocabulary of byte-pair encoding, but vocab-type is "
                 "words; bpe-dropout=0 trains without"),
                (translation, ["--config", self.dir / "none.yml"],
                 "valid-metrics: none given, expected at least one of bleu, chrf, cross-entropy"),
                (lm, ["--valid-metrics", "bleu"], "bleu is no metric of a language model"),
                (lm, ["--optimizer-params", "2"], "optimizer-params: beta1 is 2")):
            with self.subTest(more=more):
                done = run(*task, "--model", self.dir / "m", *more, status=2)
                self.assertIn(said, done.stderr.splitlines()[-1])
                self.assertNotIn("vocabulary: ", done.stderr)
                self.assertFalse((self.dir / "m").exists())
        # Which language models do not read.
        done = run(*lm, "--model", self.dir / "lm", "--bpe-dropout", "0.1", "--dim-vocabs", "100",
                   "--dim-emb", "8", "--dim-rnn", "8", "--after", "1u")
        self.assertIn("bpe-dropout (task is language-model)", done.stderr)

    def test_gates_start_as_said(self):
        """--gate-init is kept when a training resumes; what it does not do is said."""
        plain = ["--unit", "lrn", "--no-layer-normalization", "--valid-metrics", "cross-entropy",
                 "--valid-freq", "2u", "--save-freq", "2u"]
        weights_of = {}
        for name, options in {"none": ["--gate-init", "none"], "constant": [],
                              "chrono": ["--gate-init", "chrono"]}.items():
            done = self.train(name, *plain, *options, "--after", "2u")
            self.assertNotRegex(done.stderr, "without effect: .*gate")
            weights_of[name] = int(re.search(r" ([\d,]+) weights", done.stderr)[1].replace(",", ""))
            done = self.train(name, *plain, "--after", "4u")
            self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])
        spec = (
            json.loads((self.dir / "chrono" / "config.json").read_text(encoding="utf-8"))["model"])
        self.assertEqual((spec["gate-init"], spec["gate-steps"]), ("chrono", 30))
        usual = json.loads(
            (self.dir / "constant" / "config.json").read_text(encoding="utf-8"))["model"]
        self.assertEqual(usual["gate-init"], "constant")  # the default
        # forward, backward, and the two units of the conditional layer have a bias of 3 planes each
        self.assertEqual(weights_of["constant"] - weights_of["none"], 4 * 3 * spec["dim-rnn"])
        self.assertEqual(weights_of["chrono"], weights_of["constant"])
        for options, said in (
                (["--gate-init", "none", "--gate-bias", "1"], "gate-bias (gate-init is none)"),
                (["--gate-init", "chrono", "--gate-bias", "1"], "gate-bias (gate-init is chrono)"),
                (["--gate-init", "constant", "--gate-steps", "9"],
                 "gate-steps (gate-init is constant)"),
                (["--gate-init", "chrono", "--unit", "srn"],
                 "gate-init (gate-init sets no bias of unit srn)"),
                (["--unit", "mingru", "--bias"], "bias (unit mingru always has one)"),
                (["--no-tied-embeddings", "--tied-embeddings-all"],
                 "tied-embeddings (tied-embeddings-all is true)")):
            with self.subTest(said=said):
                done = self.train("idle", *plain, *options, "--after", "1u",
                                  "--no-reload", status=2)
                self.assertRegex(done.stderr, "options without effect: .*" + re.escape(said))

    def test_dumped_config_trains_the_same_model(self):
        self.train("a", "--after", "20u")
        dump = self.train("b", "--after", "20u", "--dump-config").stdout
        self.assertFalse((self.dir / "b").exists())
        (self.dir / "c.yml").write_text(dump, encoding="utf-8")
        run("-c", self.dir / "c.yml", "--model", self.dir / "b")
        self.assertEqual(weights(self.dir / "a"), weights(self.dir / "b"))

    def test_what_has_no_effect_is_told_once(self):
        search = ["--beam-size", "2", "--valid-max-sentences", "3"]
        told = ("warning: options without effect: valid-max-sentences (no metric of valid-metrics "
                "translates), beam-size (no metric of valid-metrics translates)")
        self.assertIn(told, self.train("ce", "--after", "2u", *search,
                                       "--valid-metrics", "perplexity", "cross-entropy").stderr)
        self.assertNotIn("without effect",
                         self.train("bleu", "--after", "2u", *search, "--valid-metrics", "chrf",
                                    "cross-entropy").stderr)
        done = self.train("m", "--after", "2u", "--schedule", "rnmt+", "--lr-warmup", "10u",
                          "--lr-decay-inv-sqrt", "20u", "--lr-decay-start", "2", "1",
                          "--valid-lines", "20",
                          "--valid-sets", self.dir / "valid.en", self.dir / "valid.de")
        told = [line for line in done.stderr.splitlines() if "without effect" in line]
        self.assertEqual(told,
                         ["warning: options without effect: valid-lines (valid-sets are given), "
                          "lr-warmup (schedule rnmt+ has its own warm-up), "
                          "lr-decay-inv-sqrt (schedule is rnmt+), lr-decay-start (lr-decay is 0)"])
        shutil.copy(self.dir / "m" / "vocab.spm", self.dir / "v.spm")
        done = self.train("v", "--after", "2u", "--vocabs", self.dir / "v.spm", "--no-joint-vocab",
                          "--lr-decay", "0.5", "--lr-decay-start", "2", "1", "--rnmt-schedule", "4",
                          "5", "6", "7")
        self.assertIn("options without effect: dim-vocabs (vocabs are given), joint-vocab (vocabs "
                      "are given), rnmt-schedule (schedule is inv-sqrt), "
                      "lr-decay-start (its first number: lr-decay-strategy is stalled)\n",
                      done.stderr)
        # every setting, most of them at their defaults
        dump = self.train("d", "--dump-config").stdout
        (self.dir / "c.yml").write_text(dump, encoding="utf-8")
        self.assertNotIn("without effect", run("-c", self.dir / "c.yml", "--model", self.dir / "d",
                                               "--after", "2u").stderr)
        # A dump has no choice without effect, and none is told: a unit without biases of gates.
        done = self.train("u", "--unit", "rglru", "--dump-config")
        self.assertIn("gate-init: auto\n", done.stdout)
        self.assertNotIn("gate-init", done.stderr)
        (self.dir / "c.yml").write_text(done.stdout, encoding="utf-8")
        self.assertNotIn("without effect", run("-c", self.dir / "c.yml", "--model", self.dir / "u",
                                               "--after", "2u").stderr)
        words = self.train("w", "--after", "2u", "--vocab-type", "words",
                           "--sentencepiece-max-lines", "5")
        self.assertIn("sentencepiece-max-lines (vocab-type is words)", words.stderr)
        self.assertNotIn("--input", self.train("i", "stray", "strays", "--after", "2u",
                                               status=2).stderr)


if __name__ == "__main__":
    unittest.main()
