#!/usr/bin/env python3
"""The steps of nmt-distill: what it refuses before the first one.
Usage: test_distill_steps.py BIN_FOLDER."""
import shutil
import sys
import unittest

from distill_case import output_of, TINY, DistillCase


class Steps(DistillCase):
    def test_the_student_and_the_teachers_are_checked_before_the_first_step(self):
        none = self.home / "none"
        some = [*self.base, "--output", none, self.source]
        without = self.home / "no-checkpoint"
        shutil.copytree(self.home / "teacher", without, symlinks=True)
        for name in ("latest", "best"):
            (without / name).unlink()
        shutil.rmtree(without / "checkpoints")
        other = self.home / "other-vocabulary"
        output_of("nmt-train", self.home / "train.en", self.home / "train.de", "--valid-sets", *self.valid, "--model", other, "--unit", "gru",
                  "--dim-vocabs", 300, *TINY, "--after", "1u")
        teacher = some.index(self.home / "teacher")
        with_teachers = [[*some[:teacher], *each, *some[teacher + 1:]] for each in (["nothere"], [self.home / "teacher", other], [without])]
        plain = ["--type", "seq2seq", "--heads", 1, "--attention", "none"]
        for command, said in (([*some, "--heads", 5], ("heads", "5")),
                              ([*some, "--vocabs", "nofile.spm"], ("nofile.spm",)),
                              ([*some, "--precision", "tf32"], ("error: precision: tf32",)),
                              ([*some, "--teacher-precision", "tf32"], ("error: teacher-precision: tf32",)),
                              ([*some, "--recurrences", "cudnn"], ("recurrences: cudnn",)),
                              ([*some, "--type", "gnmt", "--dec-depth", 1], ("dec-depth", "gnmt")),
                              ([*some, "--attention-projections"], ("attention-projections",)),
                              ([*some, "--attention", "none", "--guided-alignment-weight", 0], ("attention none",)),
                              ([*some, *plain, "--guided-alignment-weight", 0], ("attention: none", "shortlist", "--until train")),
                              ([*some, "--alignment-head", 0], ("alignment-head: 0",)),
                              ([*some, "--dim-vocabs", 300, 400, "--joint-vocab"], ("dim-vocabs",)),
                              ([*some, "--lr-cooldown", 0.5, "--after", "0"], ("lr-cooldown",)),
                              (with_teachers[0], ("error: teacher: nothere is not a model directory: there is no such directory",)),
                              (with_teachers[1], ("error: teacher:", "different target vocabularies")),
                              (with_teachers[2], (without, "no checkpoint")),
                              ([*some, "--backward", "nothere"], ("error: backward: nothere is not a model directory",))):
            for more in ([], ["--dry-run"]):
                with self.subTest(command=command[len(some):], more=more):
                    self.refused(3 if command == with_teachers[2] else 2, *command, *more, says=said)
                    self.assertFalse(none.exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
