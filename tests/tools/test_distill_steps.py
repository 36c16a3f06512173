#!/usr/bin/env python3
"""The steps of nmt-distill: what it refuses before the first one, what is finished, and what is
made again. Usage: test_distill_steps.py BIN_FOLDER."""
import json
import shutil
import sys
import unittest

from distill_case import output_of, run, TINY, DistillCase


class Steps(DistillCase):
    def passes(self, command, finished):
        """Runs the command; `finished`: the number of steps that are skipped."""
        done = run("nmt-distill", *command)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stderr.decode().count("finished before"), finished,
                         done.stderr.decode())
        return done.stderr.decode()

    def planned(self, command):
        return dict(line.split(maxsplit=1) for line in output_of("nmt-distill", *command,
                                                                 "--dry-run").decode().splitlines())

    def test_the_student_and_the_teachers_are_checked_before_the_first_step(self):
        none = self.home / "none"
        some = [*self.base, "--output", none, self.source]
        without = self.home / "no-checkpoint"
        shutil.copytree(self.home / "teacher", without, symlinks=True)
        for name in ("latest", "best"):
            (without / name).unlink()
        shutil.rmtree(without / "checkpoints")
        other = self.home / "other-vocabulary"
        output_of("nmt-train", self.home / "train.en", self.home / "train.de", "--valid-sets",
                  *self.valid, "--model", other, "--unit", "gru",
                  "--dim-vocabs", 300, *TINY, "--after", "1u")
        teacher = some.index(self.home / "teacher")
        with_teachers = [[*some[:teacher], *each, *some[teacher + 1:]]
                         for each in (["nothere"], [self.home / "teacher", other], [without])]
        plain = ["--type", "seq2seq", "--heads", 1, "--attention", "none"]
        for command, said in (
                ([*some, "--heads", 5], ("heads", "5")),
                ([*some, "--vocabs", "nofile.spm"], ("nofile.spm",)),
                ([*some, "--precision", "tf32"], ("error: precision: tf32",)),
                ([*some, "--teacher-precision", "tf32"], ("error: teacher-precision: tf32",)),
                ([*some, "--recurrences", "cudnn"], ("recurrences: cudnn",)),
                ([*some, "--type", "gnmt", "--dec-depth", 1], ("dec-depth", "gnmt")),
                ([*some, "--attention-projections"], ("attention-projections",)),
                ([*some, "--attention", "none", "--guided-alignment-weight", 0],
                 ("attention none",)),
                ([*some, *plain, "--guided-alignment-weight", 0],
                 ("attention: none", "shortlist", "--until train")),
                ([*some, "--alignment-head", 0], ("alignment-head: 0",)),
                ([*some, "--dim-vocabs", 300, 400, "--joint-vocab"], ("dim-vocabs",)),
                ([*some, "--lr-cooldown", 0.5, "--after", "0"], ("lr-cooldown",)),
                (with_teachers[0],
                 ("error: teacher: nothere is not a model directory: there is no such directory",)),
                (with_teachers[1], ("error: teacher:", "different target vocabularies")),
                (with_teachers[2], (without, "no checkpoint")),
                ([*some, "--backward", "nothere"],
                 ("error: backward: nothere is not a model directory",))):
            for more in ([], ["--dry-run"]):
                with self.subTest(command=command[len(some):], more=more):
                    self.refused(3 if command == with_teachers[2] else 2, *command,
                                 *more, says=said)
                    self.assertFalse(none.exists())

    def test_texts_are_regular_files_and_the_output_is_a_directory(self):
        none = self.home / "none"
        for output, texts, said in (
                (none, ["/dev/null"], "train-sets: /dev/null cannot be read several times"),
                (none, ["-"], "train-sets: standard input cannot be read several times"),
                (none, [self.source, "--test-sets", "/dev/null", self.source],
                 "test-sets: /dev/null cannot be read several times"),
                (self.source, [self.source], f"output: {self.source} is not a directory")):
            for more in ([], ["--dry-run"]):
                with self.subTest(texts=texts, more=more):
                    self.refused(2, *self.base, "--output", output, *texts, *more, says=(said,))
                    self.assertFalse(none.exists())

    def test_redo_removes_nothing_that_the_command_reads(self):
        work, command = self.copied("inputs")
        student, text = work / "student", [work / "distilled.source", work / "distilled.target"]
        vocabulary = next(student.glob("*.spm"))
        teacher = [student if word == self.home / "teacher" else word for word in command]
        for arguments, step, kept in ((teacher, "translate", student),
                                      ([*command[:-2], *text], "filter", text[0]),
                                      ([*command, "--test-sets", *text], "select", text[0]),
                                      ([*command, "--vocabs", vocabulary], "train", vocabulary)):
            for more in ([], ["--dry-run"]):
                with self.subTest(step=step, more=more):
                    self.refused(2, *arguments, "--redo", step, *more,
                                 says=(f"redo: --redo {step} would remove {kept}, which",))
                    self.assertTrue(kept.exists())

    def test_a_step_without_results_has_no_settings(self):
        work, damaged = self.home / "begun", self.home / "damaged"
        shutil.copytree(self.home / "teacher", damaged, symlinks=True)
        weights = damaged / "best/model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
        command = [*self.base, "--output", work, "--until", "translate", self.source]
        self.refused(3, *(damaged if word == self.home / "teacher" else word for word in command),
                     says=("model.safetensors",))
        self.assertFalse((work / "steps/translate.json").exists())
        self.passes(command, 0)
        # As an earlier version left it: a record, but no file.
        (work / "steps/translate.json").write_text('{"settings": {"source": "other"}, "finished": '
                                                   'false, "result": null}')
        self.refused(2, *command, says=("translate", "source: other before", "--redo translate"))
        shutil.rmtree(work / "translate")
        self.passes(command, 0)
        self.assertEqual(sorted((work / "translate").iterdir())[0].read_bytes(),
                         sorted((self.work / "translate").iterdir())[0].read_bytes())

    def test_a_removed_result_is_not_made_with_other_settings(self):
        work, command = self.copied("removed")
        for name in ("distilled.source", "distilled.target"):
            (work / name).unlink()
        self.assertIn("refused: ", self.planned([*command, "--max-ratio", 1])["filter"])
        self.refused(2, *command, "--max-ratio", 1, says=("max-ratio", "--redo filter"))
        # So too where the step was begun again, and interrupted.
        record = work / "steps/filter.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), "finished": False}))
        self.assertIn("refused: ", self.planned([*command, "--max-ratio", 1])["filter"])
        self.refused(2, *command, "--max-ratio", 1, says=("max-ratio", "--redo filter"))
        self.assertFalse((work / "distilled.source").exists())

    def test_damaged_records_name_their_file(self):
        work, command = self.copied("records")
        for step, result in (("translate", {}), ("check", {"loss": None, "speed": None})):
            record = work / f"steps/{step}.json"
            before = record.read_text()
            record.write_text(json.dumps({**json.loads(before), "result": result}))
            self.refused(3, *command, says=(str(record), f"--redo {step}"))
            record.write_text(before)

    def test_the_student_is_measured_by_words(self):
        work, command = self.copied("blank")
        for side in ("en", "de"):
            (self.home / f"blank.{side}").write_text("\n \n")
        self.refused(3, *command, "--test-sets", self.home / "blank.en", self.home / "blank.de",
                     says=("blank.en", "no line with text"))

    def test_a_finished_training_records_only_what_it_used(self):
        work, command = self.copied("extended")
        record, model = work / "steps/train.json", work / "student/best/model.safetensors"
        before = record.read_bytes(), model.read_bytes()
        for options, said in ((["--noise", 0.3], "noise-upper: 0 before, 0.3 now"),
                              (["--dropout", 0.3], "dropout-emb: 0 before, 0.3 now"),
                              (["--guided-alignment-weight", 0],
                               "guided-alignment-weight: 0.1 before, 0 now"),
                              (["--seed", 7], "seed: 1234 before, 7 now"),
                              (["--after", "30u"], "after: 60u before, 30u now")):
            self.refused(2, *command, *options,
                         says=("train", said, "the training is over", "--redo train"))
            self.assertIn(said, self.planned([*command, *options])["train"])
            self.assertEqual(before, (record.read_bytes(), model.read_bytes()), options)
        # What has the value that the training had was used.
        self.passes([*command, "--seed", 1234, "--until", "train"], 4)
        self.assertEqual(json.loads(record.read_bytes())["settings"]["seed"], "1234")
        self.assertEqual(before[1], model.read_bytes())
        longer = [*command, "--after", "90u", "--noise", 0.3]
        plan = self.planned(longer)
        self.assertEqual((plan["train"], plan["shortlist"]),
                         ("to be continued", "refused if the student changes (--redo shortlist)"))
        self.passes([*longer, "--until", "train"], 4)
        stored = json.loads(record.read_bytes())
        self.assertEqual((stored["finished"], stored["result"]["updates"]), (True, 90))
        self.assertEqual((stored["settings"]["after"], stored["settings"]["noise-typos"]),
                         ("90u", "0.3"))
        self.passes([*longer, "--until", "train"], 5)
        self.refused(2, *command, says=("train", "before", "the training is over", "--redo train"))
        self.refused(2, *longer, says=("shortlist", "student", "--redo shortlist"))
        self.passes([*longer, "--redo", "shortlist"], 5)

    def test_advice_has_options_of_nmt_distill(self):
        work, command = self.copied("advice")
        record = work / "steps/train.json"
        stored = json.loads(record.read_bytes())
        record.write_text(json.dumps({**stored, "finished": False, "result": None}))
        told = self.passes([*command, "--until", "train"], 4)
        self.assertIn("already finished (update 60 of 60 (after)); extend it (after=+10e: "
                      "ten more epochs), or repeat the step with --redo train", told)
        self.assertEqual(json.loads(record.read_bytes()), stored)
        plain = self.home / "unguided"
        begun = [*self.base, "--output", plain, "--until", "train", self.source]
        self.passes([*begun, "--guided-alignment-weight", 0], 0)
        self.refused(2, *begun, "--after", "90u",
                     says=("guided-alignment: this training began without it",
                           "repeat the step with --redo train"))
        (work / "student/config.json").unlink()
        self.refused(3, *command, says=("student has checkpoints but no config.json",
                                        "repeat the step with --redo train"))

    def test_missing_results_are_made_again(self):
        work, command = self.copied("missing")
        for name in ("translate/part-000001.nbest", "select/part-000002.tsv", "distilled.target",
                     "align/part-000000.links", "distilled.links",
                     "shortlist.txt", "student", "student-int8"):
            path = work / name
            is_model = path.is_dir()
            before = (path / "best/model.safetensors" if is_model else path).read_bytes()
            shutil.rmtree(path) if is_model else path.unlink()
            self.assertIn("missing", self.planned(
                command)[{"distilled.target": "filter", "distilled.links": "align",
                          "shortlist.txt": "shortlist", "student": "train",
                          "student-int8": "convert"}.get(name, name.split("/")[0])])
            self.passes(command, 7)
            self.assertEqual(before, (path / "best/model.safetensors" if is_model
                                      else path).read_bytes(), name)
        for name in ("table.txt", "table.json"):
            (work / name).unlink()
            self.passes(command, 7)
            self.assertTrue((work / name).exists())
        # A step whose results are all removed takes other settings, and so does the one
        # that it begins.
        shutil.rmtree(work / "student")
        self.passes([*command, "--seed", 7, "--until", "train"], 4)
        self.assertNotEqual((work / "student/best/model.safetensors").read_bytes(),
                            (self.work / "student/best/model.safetensors").read_bytes())

    def test_damaged_parts_are_noticed(self):
        work, command = self.copied("parts")
        for name, redo, cuts in (("align/part-000001.links", "", (1, 100)),
                                 ("select/part-000001.tsv", "filter", (1, 500)),
                                 ("translate/part-000001.nbest", "select", (1, 2000))):
            path, step = work / name, name.split("/")[0]
            whole = path.read_bytes()
            for cut in cuts:
                path.write_bytes(whole[:-cut])
                if not redo:
                    (work / "distilled.links").unlink()
                more = [*(["--redo", redo] if redo else []), "--until", redo or step]
                self.refused(3, *command, *more,
                             says=(path, "remove the file, and the same command makes it again"))
                path.unlink()
                self.passes([*command, *more], {"select": 0, "filter": 1}.get(redo, 3))
                self.assertEqual(path.read_bytes(), whole)
            if not redo:
                self.assertEqual((work / "distilled.links").read_bytes(),
                                 (self.work / "distilled.links").read_bytes())

    def test_the_plan_is_what_happens(self):
        work, command = self.copied("planned")
        names = ["translate", "select", "filter", "align", "train", "shortlist", "convert", "check"]
        self.assertEqual(self.planned(command), {name: "finished" for name in names})
        plan = self.planned([*command, "--teacher-beam-size", 5])
        self.assertEqual(
            plan, {"translate": "refused: teacher-beam-size: 3 before, 5 now (--redo translate)",
                   **{name: "not reached" for name in names[1:]}})
        plan = self.planned([*command, "--beam-size", 2])
        self.assertEqual([plan[name] for name in names[4:]],
                         ["finished", "finished",
                          "refused: beam-size: 1 before, 2 now (--redo convert)", "not reached"])
        plan = self.planned([*command, "--dim-rnn", 24])
        self.assertEqual(plan["train"], "refused: dim-rnn: 16 before, 24 now (the model depends on "
                                        "it) (--redo train)")
        # --redo removes nothing where the command is refused.
        self.refused(2, *command, "--teacher-beam-size", 5, "--redo", "train",
                     says=("translate", "teacher-beam-size"))
        self.assertTrue((work / "student/config.json").exists())
        fresh = [self.home / "fresh" if word == work else word for word in command]
        self.assertEqual(self.planned(fresh), {name: "to be run" for name in names})
        self.assertEqual(self.planned([*fresh, "--guided-alignment-weight", 0])["align"], "off")
        self.assertFalse((self.home / "fresh").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
