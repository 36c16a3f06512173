#!/usr/bin/env python3
"""scripts/bench/units/compare_units.py on toy data: two units, one of which fails; what is finished
is not done again, what was killed goes on. Usage: test_compare_units.py BIN_DIR"""
import csv
import fcntl
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = """
type: deep
dim-emb: 16
dim-rnn: 16
enc-depth: 1
dec-depth: 1
mini-batch-words: 200
valid-freq: 10u
save-freq: 10u
disp-freq: 5u
valid-metrics: [bleu]
valid-max-sentences: 5
early-stopping: 0
beam-size: 1
max-length-factor: 1
"""


class CompareUnits(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="nmt-compare-test-")
        self.folder = pathlib.Path(self.temporary.name)
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "300",
                        "--valid", "20", "--test", "20", self.folder], check=True)
        (self.folder / "base.yaml").write_text(SETTINGS)
        (self.folder / "overlay.yaml").write_text("unit: lrn\nactivation: identity\n")

    def tearDown(self):
        self.temporary.cleanup()

    def command(self, *arguments, updates=20, pieces=200, work="work", **files):
        sets = [word for name in ("train", "valid", "test") for file in [files.get(name, name)]
                for word in (f"--{name}-sets", self.folder / f"{file}.en",
                             self.folder / f"{file}.de")]
        command = [sys.executable, ROOT / "scripts/bench/units/compare_units.py",
                   "--config", self.folder / "base.yaml",
                   *(["--updates", updates] if updates else []), "--pieces", pieces,
                   "--work", self.folder / work, "--no-figures", *sets, *arguments]
        return [str(word) for word in command]

    def run_it(self, *arguments, status=0, **options):
        done = subprocess.run(self.command(*arguments, **options), capture_output=True, text=True,
                              timeout=120, env=self.environment())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    @staticmethod
    def environment():
        return {**os.environ, "NMT_BUILD": str(BIN.parent)}

    def rows(self):
        with open(self.folder / "work/table.csv", newline="", encoding="utf-8") as file:
            return {row["unit"]: row for row in csv.DictReader(file)}

    def test_a_failed_unit_does_not_lose_the_others(self):
        units = ["gru", str(self.folder / "overlay.yaml"), "gru:reset=never"]
        self.run_it(*units, "--jobs", "2")
        rows = self.rows()
        self.assertEqual([rows[name]["status"] for name in ("gru", "overlay", "gru:reset=never")],
                         ["ok", "ok", "failed"])
        self.assertIn("'never'", rows["gru:reset=never"]["why"])
        self.assertIn("'never'", (self.folder / "work/table.md").read_text(encoding="utf-8"))
        # The figures are those of the programs: weights counted in the file itself, BLEU and
        # p-value by nmt-bleu.
        for name in ("gru", "overlay"):
            run = self.folder / "work" / name / "seed-1"
            raw = (run / "model/latest/model.safetensors").read_bytes()
            header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
            weights = sum(tensor["data_offsets"][1] - tensor["data_offsets"][0]
                          for key, tensor in header.items() if key != "__metadata__") // 4
            self.assertEqual(int(rows[name]["parameters"]), weights)
            self.assertEqual(len((run / "hypothesis").read_text(encoding="utf-8").splitlines()), 20)
            score = subprocess.run([BIN / "nmt-bleu", self.folder / "test.de",
                                    "-i", run / "hypothesis", "-b", "-w", "4"], capture_output=True,
                                   text=True, check=True)
            self.assertAlmostEqual(float(rows[name]["bleu"]), float(score.stdout), places=3)
        config = json.loads((self.folder / "work/overlay/seed-1/model/config.json").read_text())
        self.assertIn("identity", json.dumps(config))
        self.assertEqual(rows["gru"]["p_value"], "")
        self.assertTrue(0 < float(rows["overlay"]["p_value"]) <= 1)

        # The same command again trains nothing of what is finished and tries the failed one
        # once more.
        said = self.run_it(*units)
        self.assertIn("2 of 3 trainings are done already", said)
        self.assertIn("gru:reset=never, seed 1: starts", said)
        self.assertNotIn("gru, seed 1", said)

        # A training that has gone further than what is asked for now is no answer to it.
        self.run_it("gru", updates=10, status=1)
        self.assertIn("has 20 updates", self.rows()["gru"]["why"])
        self.run_it(*units)

        # The speed stage fills its columns and leaves the others.
        self.run_it(*units, "--speed", "--rounds", "1", "--speed-updates", "400",
                    "--speed-sentences", "20")
        after = self.rows()
        self.assertGreater(float(after["gru"]["tokens_per_second"]), 0)
        self.assertGreater(float(after["overlay"]["ms_batch_1"]), 0)
        self.assertAlmostEqual(float(after["gru"]["tokens_ratio"]), 1)
        for column in ("bleu", "p_value"):
            self.assertEqual(after["overlay"][column], rows["overlay"][column])
        self.assertEqual(after["gru:reset=never"]["status"], "failed")
        # Of a training with another budget, the speed stage shows the speed alone.
        speed = ("--speed", "--rounds", "1", "--speed-updates", "400", "--speed-sentences", "5")
        self.run_it("gru", *speed, updates=15, status=1)
        self.assertIn("seed 1: trained with another budget", self.rows()["gru"]["why"])
        self.assertEqual(self.rows()["gru"]["bleu"], "")
        self.assertGreater(float(self.rows()["gru"]["tokens_per_second"]), 0)
        # A result that does not tell its budget counts.
        file = self.folder / "work/gru/seed-1/result.json"
        result = json.loads(file.read_text())
        file.write_text(json.dumps({name: value
                                    for name, value in result.items() if name != "budget"}))
        self.run_it("gru", *speed, updates=15)
        self.assertEqual(self.rows()["gru"]["bleu"], rows["gru"]["bleu"])

    def test_a_baseline_of_another_text_has_no_p(self):
        overlay = str(self.folder / "overlay.yaml")
        self.part_of("valid", "other", 20)  # as many lines as the test set
        self.run_it("gru", overlay)
        self.run_it(overlay, "--baseline", "overlay", test="other")
        self.run_it("gru", overlay, "--speed", "--rounds", "1", "--speed-updates", "400",
                    "--speed-sentences", "5", test="other")
        rows = self.rows()
        self.assertIn("these test sets are not translated", rows["gru"]["why"])
        self.assertEqual((rows["overlay"]["status"], rows["overlay"]["p_value"]), ("ok", ""))
        self.run_it("gru", overlay, test="other")
        self.assertTrue(0 < float(self.rows()["overlay"]["p_value"]) <= 1)

    def test_cpu_time_of_another_process(self):
        sys.path.insert(0, str(ROOT / "scripts/bench"))
        from common import system

        process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while system.cpu_seconds(process.pid) < 0.5:
            time.sleep(0.01)
        with open(f"/proc/{process.pid}/stat") as stat:
            ticks = (sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))
                     / os.sysconf("SC_CLK_TCK"))
        self.assertAlmostEqual(system.cpu_seconds(process.pid), ticks, delta=0.5)
        own = system.cpu_seconds(os.getpid())
        self.assertLessEqual(own, time.process_time())

    def test_a_speed_that_cannot_be_measured_is_an_error(self):
        programs = self.folder / "build/bin"
        programs.mkdir(parents=True)
        for program in ("nmt-vocab", "nmt-translate", "nmt-bleu", "nmt-info"):
            (programs / program).symlink_to(BIN / program)
        # Both progress lines come at once.
        line = '{"event":"display","labels":%d,"target_tokens_per_second":5}'
        (programs / "nmt-train").write_text("#!/bin/sh\nwhile [ \"$1\" != --model ]; do shift; "
                                            "done\nmkdir -p \"$2\"\n"
                                            f"printf '{line}\\n{line}\\n' 1 2 > \"$2/lines\"\n"
                                            "mv \"$2/lines\" \"$2/train.jsonl\"\nsleep 0.3\n")
        (programs / "nmt-train").chmod(0o755)
        command = [*self.command("gru", "--speed", "--rounds", "1"), "--threads"]
        # the rate that nmt-train reports is in wall time
        for threads, speed in (("1", ""), ("2", "5")):
            done = subprocess.run([*command, threads], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "NMT_BUILD": str(programs.parent)})
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)  # not trained yet
            self.assertEqual("too short to measure its CPU time: give more --speed-updates"
                             in self.rows()["gru"]["why"], threads == "1")
            self.assertEqual(self.rows()["gru"]["tokens_per_second"].removesuffix(".0"), speed)

    def part_of(self, name, new, lines):
        for side in ("en", "de"):
            text = (self.folder
                    / f"{name}.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
            (self.folder / f"{new}.{side}").write_text("".join(text[:lines]), encoding="utf-8")

    def test_other_texts_are_translated_again(self):
        self.part_of("valid", "other", 15)
        self.run_it("gru")
        run = self.folder / "work/gru/seed-1"
        log = (run / "train.log").read_bytes()

        def check(test, work="work"):
            output = self.folder / work / "gru/seed-1/hypothesis"
            score = subprocess.run([BIN / "nmt-bleu", self.folder / f"{test}.de", "-i", output,
                                    "-b", "-w", "4"], capture_output=True, text=True, check=True)
            self.assertAlmostEqual(float(self.rows()["gru"]["bleu"]), float(score.stdout), places=3)

        before = (run / "hypothesis").read_bytes()
        self.run_it("gru", "--speed", "--rounds", "1", "--speed-updates", "2",
                    "--speed-sentences", "5", test="other", status=1)
        self.assertIn("these test sets are not translated", self.rows()["gru"]["why"])
        self.assertIn("gru, seed 1: translates", self.run_it("gru", test="other"))
        self.assertEqual(len((run / "hypothesis").read_bytes().splitlines()), 15)
        check("other")
        self.assertIn("1 of 1 trainings are done already", self.run_it("gru", test="other"))
        self.run_it("gru")
        self.assertEqual((run / "hypothesis").read_bytes(), before)
        check("test")
        self.assertEqual((run / "train.log").read_bytes(), log)
        # More updates go on; a copy of the folder needs nothing.
        self.run_it("gru", updates=25)
        self.assertEqual(self.rows()["gru"]["updates"], "25")
        shutil.copytree(self.folder / "work", self.folder / "copy", symlinks=True)
        self.assertIn("1 of 1 trainings are done already",
                      self.run_it("gru", updates=25, work="copy"))
        # Without records, as of older versions.
        for name in ("vocab.json", "gru/seed-1/inputs.json"):
            (self.folder / "work" / name).unlink()
        result = json.loads((run / "result.json").read_text())
        (run / "result.json").write_text(json.dumps(
            {name: value for name, value in result.items() if name not in ("budget", "tests")}))
        said = self.run_it("gru", updates=25)
        self.assertIn("1 of 1 trainings are done already", said)
        self.assertIn("vocab.spm; gru, seed 1: the inputs were not recorded", said)
        self.assertEqual(said.count("warning"), 1)
        self.assertIn("gru, seed 1: translates", self.run_it("gru", updates=25, test="other"))
        check("other")

    def test_other_inputs_of_the_trainings_are_refused(self):
        overlay = str(self.folder / "overlay.yaml")
        self.run_it("gru", overlay)
        before = {path: path.read_bytes() for path in (self.folder / "work").rglob("*")
                        if path.is_file() and path.name != ".lock"}

        def refused(*arguments, what, made, **options):
            said = self.run_it(*arguments, status=1, **options)
            self.assertIn(f"compare_units.py: {self.folder / 'work' / made}: was computed with "
                          f"other values or files of {what}; take another --work", said)
            self.assertEqual(len(said.splitlines()), 1, said)

        self.part_of("train", "other", 200)
        refused("gru", made="vocab.spm", what="--train-sets", train="other")
        refused("gru", made="vocab.spm", what="--pieces", pieces=150)
        refused("gru", "--vocabs", self.folder / "base.yaml", made="gru/seed-1", what="--vocabs")
        self.part_of("valid", "other", 10)
        refused("gru", made="gru/seed-1", what="--valid-sets", valid="other")
        (self.folder / "overlay.yaml").write_text("unit: lrn\n")
        refused("gru", overlay, made="overlay/seed-1", what="--config")
        (self.folder / "base.yaml").write_text(SETTINGS + "learn-rate: 0.01\n")
        refused("gru", made="gru/seed-1", what="--config")
        self.assertEqual(before, {path: path.read_bytes() for path in before})

    def test_equal_translations_have_p_1(self):
        (self.folder / "same.yaml").write_text("unit: gru\n")
        self.run_it("gru", str(self.folder / "same.yaml"))
        files = [(self.folder / "work" / unit / "seed-1/hypothesis").read_bytes()
                 for unit in ("gru", "same")]
        self.assertEqual(*files)
        self.assertEqual(float(self.rows()["same"]["p_value"]), 1)

    def test_equal_time_scales_the_updates_by_speed(self):
        units = ["gru", str(self.folder / "overlay.yaml")]
        self.run_it(*units)
        self.assertIn("no speed.json", self.run_it(*units, "--equal-time", "gru", status=2))
        speeds = {"units": {"gru": {"tokens": 100.0}, "overlay": {"tokens": 157.0}},
                  "conditions": {"rounds": 1, "updates": 4, "threads": 1, "date": "today",
                                 "load": 0.0}}
        # of other settings
        (self.folder / "work/speed.json").write_text(
            json.dumps({**speeds, "inputs": {"overlay": {"--unit": ["gru"]}}}))
        self.assertIn("no speed of overlay", self.run_it(*units, "--equal-time", "gru", status=2))
        (self.folder / "work/speed.json").write_text(json.dumps(speeds))
        self.assertIn("no speed of ssru",
                      self.run_it(*units, "ssru", "--equal-time", "gru", status=2))
        self.run_it(*units, "--equal-time", "gru")
        self.assertEqual({name: row["updates"] for name, row in self.rows().items()},
                         {"gru": "20", "overlay": "31"})
        # Their decoding speed; the training speeds, and so the updates, stay.
        self.run_it(*units, "--equal-time", "gru", "--speed", "--rounds", 1,
                    "--speed-sentences", 2)
        self.assertEqual({name: (row["updates"], float(row["tokens_per_second"]))
                          for name, row in self.rows().items()},
                         {"gru": ("20", 100.0), "overlay": ("31", 157.0)})
        self.assertTrue(all(float(row["ms_batch_64"]) > 0 for row in self.rows().values()))
        (self.folder / "work/speed.json").write_text(json.dumps(speeds))
        self.assertIn("the time in which gru computes 20 updates",
                      (self.folder / "work/table.md").read_text(encoding="utf-8"))
        # The slower unit has more updates than it gets in the time of the faster one.
        self.run_it("gru", "--equal-time", str(self.folder / "overlay.yaml"), status=1)
        self.assertIn("more than the 13 asked for", self.rows()["gru"]["why"])
        # The overlay by its name in the table, with the inputs that --speed records.
        trained = json.loads((self.folder / "work/overlay/seed-1/inputs.json").read_text())
        recorded = {name: value for name, value in trained.items()
                    if name not in ("--seed", "--vocabs")}
        (self.folder / "work/speed.json").write_text(
            json.dumps({**speeds, "inputs": {"overlay": recorded}}))
        self.run_it(*units, "--equal-time", "overlay", status=1)
        self.assertIn("more than the 13 asked for", self.rows()["gru"]["why"])

    def damaged(self, done, file):
        """What the script says last: one line that names the file."""
        lines = done.stderr.splitlines()
        self.assertEqual((done.returncode, len(lines)), (3, 1), done.stderr)
        self.assertRegex(lines[0], rf"^\w+\.py: {file}: is no .*; remove it")
        return done.stdout

    def test_damaged_files_are_named(self):
        def run(*arguments):
            return subprocess.run(self.command("gru", *arguments, updates=10), capture_output=True,
                                  text=True, timeout=120, env=self.environment())

        self.run_it("gru", updates=10)
        speed, result = self.folder / "work/speed.json", self.folder / "work/gru/seed-1/result.json"
        conditions = {"rounds": 1, "updates": 4, "threads": 1, "date": "today", "load": 0.0}
        good = {"units": {"gru": {"tokens": 100.0}}, "conditions": conditions}
        for damage in ("", '{"units": {', "[]", '{"units": {}}',
                       *(json.dumps({**good, **other}) for other in (
                               {"units": []}, {"units": {"gru": 1}},
                               {"units": {"gru": {"tokens": "fast"}}}, {"conditions": []},
                               {"conditions": {**conditions, "load": None}}, {"inputs": []}))):
            speed.write_text(damage)
            for arguments in ([], ["--equal-time", "gru"]):
                with self.subTest(damage, arguments=arguments):
                    # before anything else
                    self.assertEqual(self.damaged(run(*arguments), speed), "")
        speed.write_text(json.dumps(good))
        self.run_it("gru", updates=10)
        speed.unlink()
        before = result.read_text()
        for damage in (before[:20], "[]", "{}"):
            result.write_text(damage)
            with self.subTest(damage):
                self.damaged(run("--speed", "--rounds", "1", "--speed-updates", "2",
                                 "--speed-sentences", "2"), result)

    def test_damaged_curves_are_named(self):
        (self.folder / "table.csv").write_text(
            "unit,bleu,ci,parameters,tokens_per_second,ms_batch_1,ms_batch_64\n"
            "gru,20,1,1000,50,3,2\n")
        curves = self.folder / "curves.json"
        for damage in ("", '{"gru": [[1', "[]", '{"gru": 1}', '{"gru": [1, 2]}',
                       '{"gru": [[1, 2, 3], [4, 5, 6]]}', '{"gru": [[1, "a"], [2, "b"]]}'):
            curves.write_text(damage)
            with self.subTest(damage):
                self.damaged(subprocess.run([
                    sys.executable, ROOT / "scripts/bench/units/plot_units.py", self.folder, "gru"],
                                            capture_output=True, text=True, timeout=60), curves)

    def test_limits_of_the_settings_do_not_end_trainings(self):
        # After the second validation it would stop, and after a moment.
        (self.folder / "limits.yaml").write_text("early-stopping: 1\nmax-minutes: 0.0001\n"
                                                 "after: 12u\nlearn-rate: 0.5\nvalid-metrics: "
                                                 "[cross-entropy]\n")
        self.run_it("gru", "--config", self.folder / "limits.yaml", updates=43)
        self.assertEqual((self.rows()["gru"]["status"], self.rows()["gru"]["updates"]),
                         ("ok", "43"))
        # A training of an older version that was cut short goes on.
        file = self.folder / "work/gru/seed-1/result.json"
        result = json.loads(file.read_text())
        command = [*result["command"][: result["command"].index("--after")], "--after", "50u"]
        file.write_text(json.dumps(
            {**{name: value for name, value in result.items() if name not in ("budget", "tests")},
             "command": command}))
        self.run_it("gru", "--config", self.folder / "limits.yaml", updates=50)
        self.assertEqual(self.rows()["gru"]["updates"], "50")

    def test_a_training_that_ends_early_has_failed(self):
        programs = self.folder / "build/bin"
        programs.mkdir(parents=True)
        for program in ("nmt-vocab", "nmt-translate", "nmt-bleu", "nmt-info"):
            (programs / program).symlink_to(BIN / program)
        (programs / "nmt-train").write_text(f'#!/bin/sh\nexec "{BIN}/nmt-train" "$@" --after 10u\n')
        (programs / "nmt-train").chmod(0o755)
        done = subprocess.run(self.command("gru"), capture_output=True, text=True, timeout=120,
                              env={**os.environ, "NMT_BUILD": str(programs.parent)})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("ended after 10 of 20 updates", self.rows()["gru"]["why"])

    def test_until_early_stopping_on_two_tests(self):
        # a rate at which nothing is learned
        (self.folder / "stop.yaml").write_text("early-stopping: 2\nmax-minutes: 0.0001\n"
                                               "learn-rate: 0.5\nvalid-metrics: [cross-entropy]\n")
        other = [self.folder / "valid.en", self.folder / "valid.de"]
        self.run_it("gru", "ssru", "--config", self.folder / "stop.yaml", "--until-converged",
                    "--test-sets", *other, updates=None)
        for unit, row in self.rows().items():
            self.assertEqual(row["status"], "ok")
            self.assertIn("(early-stopping)", (self.folder / "work" / unit
                                               / "seed-1/train.log").read_text(encoding="utf-8"))
        table = (self.folder / "work/table.md").read_text(encoding="utf-8").splitlines()
        self.assertTrue(table[0].endswith("| valid.de (p) |"))
        for unit, line in (("gru", table[2]), ("ssru", table[3])):
            score = subprocess.run([BIN / "nmt-bleu", other[1],
                                    "-i", self.folder / "work" / unit / "seed-1/hypothesis.2",
                                    "-b", "-w", "1"], capture_output=True, text=True, check=True)
            self.assertEqual(line.split("|")[-2].split()[0], score.stdout.strip())

    def test_a_killed_run_goes_on(self):
        # More updates than it can do before it is killed, however late the machine lets us see that
        # it has begun to save.
        folder = self.folder / "work/gru/seed-1"
        log = folder / "train.log"
        process = subprocess.Popen(self.command("gru", updates=10**7), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=self.environment())
        deadline = time.monotonic() + 120
        while not (log.exists() and "saved update 10" in log.read_text(encoding="utf-8")):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        # The training that it left saves and leaves; until then the folder is locked.
        with open(self.folder / "work/.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        displays = [json.loads(line) for line in (folder / "model/train.jsonl").read_text(
            encoding="utf-8").splitlines()]
        updates = (max(line["updates"] for line in displays) // 10 + 3) * 10
        self.run_it("gru", updates=updates)
        self.assertIn("resuming at update", log.read_text(encoding="utf-8"))
        self.assertEqual(self.rows()["gru"]["updates"], str(updates))
        # and it is what an undisturbed training gives
        weights = (folder / "model/latest/model.safetensors").read_bytes()
        (self.folder / "work").rename(self.folder / "first")
        self.run_it("gru", "--vocabs", self.folder / "first/vocab.spm", updates=updates)
        self.assertEqual(weights, (folder / "model/latest/model.safetensors").read_bytes())

    def test_nonsense_is_refused(self):
        self.assertIn("is given twice", self.run_it("gru", "gru", status=2))
        self.assertIn("is not of the form option=value", self.run_it("gru:groups", status=1))
        self.assertIn("--updates: '-3', expected an integer of at least 1",
                      self.run_it("gru", updates=-3, status=2))

    def test_figures(self):
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest("matplotlib is not installed")
        folder = self.folder
        (folder / "table.csv").write_text(
            "unit,bleu,ci,parameters,tokens_per_second,ms_batch_1,ms_batch_64\n"
            "gru,20,1,1000,50,3,2\nlrn,21,1,900,90,2,1\nfail,,,,,,\n")
        (folder
         / "curves.json").write_text('{"gru": [[1, 2], [3, 4]], "lrn": [[1, 3]], "fail": []}')
        subprocess.run([sys.executable, ROOT / "scripts/bench/units/plot_units.py", folder, "gru"],
                       check=True)
        for name in ("bleu.png", "speed.png", "pareto.png", "curves.png"):
            self.assertEqual((folder / name).read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_the_figures_have_a_help(self):
        def plot(*words):
            return subprocess.run([sys.executable, ROOT / "scripts/bench/units/plot_units.py",
                                   *words], capture_output=True, text=True, timeout=60)

        self.assertIn("usage: plot_units.py [-h] folder baseline", plot("--help").stdout)
        done = plot()
        self.assertEqual(done.returncode, 2)
        self.assertIn("required: folder, baseline", done.stderr)
        if importlib.util.find_spec("matplotlib"):
            done = plot(self.folder, "gru")
            self.assertEqual((done.returncode, done.stderr),
                             (1,
                              f"{self.folder}/table.csv: is missing; compare_units.py writes it\n"))

    def test_welch_against_scipy(self):
        sys.path.insert(0, str(ROOT / "scripts/bench"))
        from common import welch

        # scipy.stats.ttest_ind(a, b, equal_var=False).pvalue, scipy 1.17.1
        for a, b, p in (([27.2, 26.9, 27.5], [26.8, 26.5, 27.1], 0.177807808356),
                        ([1, 2, 3, 4], [2, 4, 6], 0.333823700078),
                        ([10, 10.1], [12, 12.3, 11.8, 12.1], 7.54479595373e-05)):
            self.assertAlmostEqual(welch.two_sided_p(a, b), p, 8)
            self.assertAlmostEqual(welch.two_sided_p(b, a), p, 8)
        self.assertAlmostEqual(welch.within(2.2621571628, 9), 0.95, 8)  # the table of Student's t
        self.assertIsNone(welch.two_sided_p([1], [1, 2]))
        self.assertIsNone(welch.two_sided_p([1, 1], [1, 1]))

    def test_the_front_has_the_units_that_no_other_beats(self):
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest("matplotlib is not installed")
        sys.path.insert(0, str(ROOT / "scripts/bench/units"))
        import plot_units
        points = [(300, 20, "slow and good"), (200, 19, "slower and worse"), (500, 15, "fast"),
                  (500, 14, "as fast, worse"), (400, 18, "between")]
        self.assertEqual([point[2] for point in plot_units.front(points)],
                         ["slow and good", "between", "fast"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
