#!/usr/bin/env python3
"""Settings of nmt-train in every task: what it chooses.
Usage: test_task_settings.py BIN_DIR [test names]"""
import random
import unittest

from training_case import run, TrainingCase

COMMON = ["--dim-emb", "16", "--dim-rnn", "16", "--cpu-threads", "1", "--precision", "float32"]


class TaskSettingsTest(TrainingCase):
    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        words = [[rng.choice(("bana", "cono", "dudu", "12", "7")) for _ in range(rng.randint(2, 8))] for _ in range(200)]
        tags = self.dir / "tags"
        tags.write_text("".join("".join(f"{w} {'N' if w.isdigit() else 'W'}\n" for w in s) + "\n" for s in words), encoding="utf-8")
        texts = self.dir / "texts"
        texts.write_text("".join(f"{'number' if s[0].isdigit() else 'word'}\t{' '.join(s)}\n" for s in words), encoding="utf-8")
        self.tasks = {"translation": [self.en, self.de, "--dim-vocabs", "200"],
                      "language-model": ["--task", "language-model", self.en, "--dim-vocabs", "200", "--bptt", "8"],
                      "tagging": ["--task", "tagging", tags],
                      "classification": ["--task", "classification", texts, "--vocab-type", "words", "--dim-vocabs", "100"]}

    def train_task(self, task, name, *more, status=0):
        return run(*self.tasks[task], "--model", self.dir / f"{task} {name}", *COMMON, *more, status=status)

    def test_checkpoints_come_without_validations_too(self):
        for task in self.tasks:
            with self.subTest(task=task):
                done = self.train_task(task, "m", "--valid-freq", "0", "--after", "1u")
                self.assertRegex(done.stderr, "save-freq: " + ("100u" if task == "translation" else "1e") + r" \(chosen: ")
                done = self.train_task(task, "m", "--valid-freq", "0", "--save-freq", "0", "--after", "2u")
                self.assertRegex(done.stderr, r"override save-freq: \S+ -> 0\n")

    def test_max_length_is_nothing_to_a_language_model(self):
        lm = ["--unit", "elstm1", "--after", "2u", "--valid-freq", "2u", "--save-freq", "2u"]
        configs = []
        for length in ("50", "80"):
            done = self.train_task("language-model", length, *lm, "--max-length", length)
            self.assertIn("positions: 8 (chosen: bptt)\n", done.stderr)
            config = (self.dir / f"language-model {length}" / "config.json").read_text(encoding="utf-8")
            configs.append(config)
        self.assertEqual(*configs)
        done = self.train_task("language-model", "80", *lm[:2], "--bptt", "9", "--positions", "0", "--after", "4u")  # as it is there
        self.assertRegex(done.stderr, r"override bptt: 8 -> 9\n")


if __name__ == "__main__":
    unittest.main()
