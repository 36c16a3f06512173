#!/usr/bin/env python3
"""Settings of nmt-train in every task: what it chooses and dumps, what has no effect, and the text
that they belong to. Usage: test_task_settings.py BIN_DIR [test names]"""
import json
import random
import re
import unittest

from training_case import change_state, run, weights, TrainingCase

COMMON = ["--dim-emb", "16", "--dim-rnn", "16", "--cpu-threads", "1", "--precision", "float32"]


class TaskSettingsTest(TrainingCase):
    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        words = [[rng.choice(("bana", "cono", "dudu", "12", "7")) for _ in range(rng.randint(2, 8))]
                 for _ in range(200)]
        tags = self.dir / "tags"
        tags.write_text("".join("".join(f"{w} {'N' if w.isdigit() else 'W'}\n" for w in s) + "\n"
                                for s in words), encoding="utf-8")
        texts = self.dir / "texts"
        texts.write_text("".join(f"{'number' if s[0].isdigit() else 'word'}\t{' '.join(s)}\n"
                                 for s in words), encoding="utf-8")
        self.tasks = {"translation": [self.en, self.de, "--dim-vocabs", "200"],
                      "language-model": ["--task", "language-model", self.en, "--dim-vocabs", "200",
                                         "--bptt", "8"],
                      "tagging": ["--task", "tagging", tags],
                      "classification": ["--task", "classification", texts, "--vocab-type", "words",
                                         "--dim-vocabs", "100"]}

    def train_task(self, task, name, *more, status=0):
        return run(*self.tasks[task], "--model", self.dir / f"{task} {name}", *COMMON, *more,
                   status=status)

    def test_checkpoints_come_without_validations_too(self):
        for task in self.tasks:
            with self.subTest(task=task):
                done = self.train_task(task, "m", "--valid-freq", "0", "--after", "1u")
                self.assertRegex(done.stderr, "save-freq: " + ("100u" if task == "translation"
                                                               else "1e") + r" \(chosen: ")
                done = self.train_task(task, "m", "--valid-freq", "0", "--save-freq", "0",
                                       "--after", "2u")
                self.assertRegex(done.stderr, r"override save-freq: \S+ -> 0\n")

    def test_max_length_is_nothing_to_a_language_model(self):
        lm = ["--unit", "elstm1", "--after", "2u", "--valid-freq", "2u", "--save-freq", "2u"]
        configs = []
        for length in ("50", "80"):
            done = self.train_task("language-model", length, *lm, "--max-length", length)
            self.assertIn("positions: 1 (chosen: windows continue a text)\n", done.stderr)
            config = (self.dir / f"language-model {length}"
                      / "config.json").read_text(encoding="utf-8")
            configs.append(config)
        self.assertEqual(*configs)
        # as it is there
        done = self.train_task("language-model", "80", *lm[:2], "--bptt", "9", "--positions", "0",
                               "--after", "4u")
        self.assertRegex(done.stderr, r"override bptt: 8 -> 9\n")

    def test_what_has_no_effect_is_told(self):
        """Arguments, and the options that are named with their reasons."""
        none = ["--valid-freq", "0", "--save-freq", "9u"]
        decay = ["--lr-decay", "0.5"]
        table = (
            [("translation", [*none, "--early-stopping", "3"], "early-stopping (valid-freq is 0)"),
             ("translation", [*none, "--early-stopping", "0", "--keep-best", "0"], ""),
             ("translation", [*none, *decay], "lr-decay (valid-freq is 0)"),
             ("translation", [*none, *decay, "--lr-decay-strategy", "epoch"], ""),
             ("translation", [*none, *decay, "--lr-decay-start", "4", "3"],
              "lr-decay (valid-freq is 0), lr-decay-start (valid-freq is 0)"),
             ("translation", [*none, "--average-after", "2"], "average-after (valid-freq is 0)"),
             ("translation", [*none, "--keep-best", "3"], "keep-best (valid-freq is 0)"),
             ("translation", ["--keep-best", "3", "--early-stopping", "3", *decay], ""),
             ("translation", ["--schedule", "constant", "--lr-floor", "1e-5"],
              "lr-floor (schedule is constant and lr-decay is 0)"),
             ("translation", ["--schedule", "constant", "--lr-floor", "1e-5", *decay], ""),
             ("translation", ["--lr-floor", "1e-5"], ""),
             ("translation", [*decay, "--lr-decay-strategy", "epoch", "--lr-decay-start", "4", "3"],
              "lr-decay-start (its second number: lr-decay-strategy is epoch)"),
             ("translation", [*decay, "--lr-decay-strategy", "epoch", "--lr-decay-start", "4"], ""),
             ("translation", ["--workers", "2"], ""),
             ("language-model", ["--workers", "2"], "workers (task is language-model)"),
             ("tagging", ["--workers", "2"], "workers (task is tagging)"),
             ("classification", ["--workers", "2"], "workers (task is classification)"),
             ("tagging", ["--dim-char-emb", "8"], "")])
        for i, (task, more, said) in enumerate(table):
            with self.subTest(task=task, more=more):
                told = re.findall(r"warning: options without effect: (.*)\n",
                                  self.train_task(task, str(i), *more, "--after", "1u").stderr)
                self.assertEqual(told, [said] if said else [])
        done = self.train_task("tagging", "words", "--dim-char-rnn", "0", "--dim-char-emb", "8",
                               "--after", "1u", status=2)
        self.assertIn("options without effect: dim-char-emb (dim-char-rnn is 0)", done.stderr)

    def test_what_early_stopping_precludes_is_told(self):
        decay = ["--lr-decay", "0.5", "--lr-decay-start", "10", "11"]
        average = ["--average-after", "3", "--early-stopping"]
        for i, (more, said) in enumerate([
                ([*average, "2"], "average-after 3 has no effect: early-stopping 2 comes first"),
                ([*average, "3"], ""), ([*average, "0"], ""),
                (decay, "lr-decay-start 11 has no effect: early-stopping 10 comes first"),
                ([*decay, "--lr-decay-strategy", "epoch+stalled"], "")]):
            with self.subTest(more=more):
                done = self.train_task("translation", str(i), *more, "--after", "1u")
                told = re.findall(r"warning: (.*has no effect: early-stopping.*)\n", done.stderr)
                self.assertEqual(told, [said] if said else [])
                dump = self.train_task("translation", str(i), *more, "--after", "1u",
                                       "--dump-config", "minimal").stdout
                self.assertIn(f"{more[0][2:]}: {more[1]}", dump)

    def test_a_shorthand_has_a_range(self):
        for more in ([], ["--noise-typos", "0.1"]):
            done = self.train_task("translation", "n", "--noise", "0.8", *more,
                                   "--after", "1u", status=2)
            self.assertIn("noise: '0.8' is not a number from 0 to 0.5", done.stderr)
        self.train_task("translation", "e", "--after-batches", "1")

    def test_a_copy_of_the_vocabulary_resumes(self):
        for task in ("classification", "language-model"):
            with self.subTest(task=task):
                self.train_task(task, "first", "--after", "1u")
                learned = "vocab.spm" if task == "language-model" else "src.spm"
                for i in range(2):
                    copy = self.dir / f"{task} {i}.spm"
                    copy.write_bytes((self.dir / f"{task} first" / learned).read_bytes())
                    self.train_task(task, "m", "--vocabs", copy, "--after", f"{i + 1}u")
        for i in range(2):  # which a tagger does not read
            done = self.train_task("tagging", "m", "--vocabs", f"none {i}", "--after", f"{i + 1}u")
            self.assertIn("options without effect: vocabs (task is tagging)", done.stderr)

    def test_what_the_task_does_not_read_may_change(self):
        """In a training that is resumed."""
        config = self.dir / "other.yml"
        config.write_text("heads: 4\njoint-vocab: false\n", encoding="utf-8")
        for task, more in (("tagging", ["--dim-vocabs", "100"]), ("classification", []),
                           ("language-model", [])):
            with self.subTest(task=task):
                self.train_task(task, "m", "--after", "1u")
                done = self.train_task(task, "m", "-c", config, *more, "--after", "2u")
                told = re.findall(r"options without effect: (.*)\n", done.stderr)[0]
                idle = ["heads", *(["dim-vocabs"] if more else []), "joint-vocab"]
                self.assertEqual(told, ", ".join(f"{name} (task is {task})" for name in idle))
                self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])

    def test_a_development_set_given_later_is_no_other_text(self):
        """The sentences that were held out are trained on from there, and epochs count on."""
        for task, arguments in self.tasks.items():
            with self.subTest(task=task):
                valid = ([self.dir / "valid.en", self.dir / "valid.de"] if task == "translation"
                         else [self.en if task == "language-model" else arguments[2]])
                self.train_task(task, "m", "--after", "1e")
                done = self.train_task(task, "m", "--after", "2e", "--valid-sets", *valid)
                self.assertIn("the batching differs from the checkpoint's; restarting the corpus "
                              "after 1 epochs", done.stderr)
                self.assertIn("epoch 2 of 2 (after)", done.stderr)

    def test_text_hashes_without_held_out_examples_are_known(self):
        """Earlier versions stored them."""
        for task, separator in (("tagging", "\n\n"), ("classification", "\n")):
            with self.subTest(task=task):
                path = self.tasks[task][2]
                examples = path.read_text(encoding="utf-8").rstrip("\n").split(separator)
                kept = [example for i, example in enumerate(examples)
                        if (i + 1) * 20 // len(examples) == i * 20 // len(examples)]
                self.assertEqual(len(kept), len(examples) - 20)
                rest = self.dir / f"{task} rest"
                rest.write_text(separator.join(kept) + separator, encoding="utf-8")
                arguments = [*self.tasks[task], *COMMON, "--save-freq", "1u"]
                run(*[rest if argument == path else argument for argument in arguments],
                    "--valid-sets", path, "--model", self.dir / f"{task} older", "--after", "1u")
                older = json.loads((self.dir / f"{task} older" / "latest" / "state.json")
                                   .read_text(encoding="utf-8"))["corpus"].split()[0]
                held = [*arguments, "--valid-lines", "20", "--model", self.dir / f"{task} m"]
                run(*held, "--after", "1u")

                def replace(state, older=older):
                    now, batches = state["corpus"].split(maxsplit=1)
                    self.assertNotEqual(now, older)
                    state["corpus"] = f"{older} {batches}"

                change_state(self.dir / f"{task} m", replace)
                done = run(*held, "--after", "2u")
                self.assertIn("resuming at update 1", done.stderr)
                self.assertNotIn("restarting the corpus", done.stderr)

    def test_a_dump_has_what_the_task_uses(self):
        for task in self.tasks:
            with self.subTest(task=task):
                dump = self.train_task(task, "a", "--after", "2u", "--dump-config").stdout
                path = self.dir / f"{task}.yml"
                path.write_text(dump, encoding="utf-8")
                done = run("-c", path, "--model", self.dir / f"{task} b")
                self.assertNotIn("without effect", done.stderr)
                self.train_task(task, "a", "--after", "2u")
                self.assertEqual(*(weights(self.dir / f"{task} {name}") for name in "ab"))

    def test_a_dump_has_no_unit_for_an_encoder_without_one(self):
        for extent in ("full", "minimal"):
            dump = self.train_task("translation", "a", "--type", "block", "--unit", "gru",
                                   "--encoder-mixer", "attention", "--dump-config", extent).stdout
            path = self.dir / "dump.yml"
            path.write_text(dump, encoding="utf-8")
            done = run("-c", path, "--model", self.dir / f"{extent} b", "--after", "1u")
            self.assertNotIn("without effect", done.stderr)
            self.assertIn("dec-cell: gru", dump)

    def test_text_hashes_of_version_0_2_0_are_known(self):
        """They read samples of files of more than 4 MiB."""
        text = self.dir / "large.en"
        text.write_text("".join(f"a line of some text {i % 977} {i}\n" for i in range(180000)),
                        encoding="utf-8")
        data = text.read_bytes()
        self.assertGreater(len(data), 1 << 22)
        mask, prime, room = (1 << 64) - 1, 0x100000001B3, len(data) - 4096
        older = (0xCBF29CE484222325 ^ len(data)) * prime & mask
        for i in range(1024):
            at = room // 1023 * i + room % 1023 * i // 1023
            for k in range(at, at + 4096, 8):
                older = (older ^ int.from_bytes(data[k:k + 8], "little")) * prime & mask
                older ^= older >> 32
        lm = ["--task", "language-model", text, "--valid-sets", self.en, "--vocab-type", "words",
              "--dim-vocabs", "200", "--bptt", "8", "--valid-freq", "1000u", "--save-freq", "1000u",
              "--model", self.dir / "large", *COMMON]
        run(*lm, "--after", "2u")
        change_state(self.dir / "large",
                     lambda state: state.update(corpus=f"{older:016x}" + state["corpus"][16:]))
        done = run(*lm, "--after", "3u")
        self.assertNotIn("restarting the corpus", done.stderr)
        self.assertIn("resuming at update 2", done.stderr)
        at = data.index(b"line", len(data) // 2 + 5000)
        for edited in range(at, at + 20000, 5000):  # one of them lies between samples
            text.write_bytes(data[:edited] + b"x" + data[edited + 1:])
            done = run(*lm, "--after", "+1u")
            self.assertIn("the training text is not the checkpoint's", done.stderr)


if __name__ == "__main__":
    unittest.main()
