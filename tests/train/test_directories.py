#!/usr/bin/env python3
"""Model directories of nmt-train: signals, damage, full and closed directories, starting anew.
Usage: test_directories.py BIN_DIR [test names]"""
import os
import shutil
import signal
import subprocess
import unittest

from training_case import BIN, SMALL, make_corpus, run, weights, TrainingCase


class DirectoriesTest(TrainingCase):
    def test_signals_save_and_leave(self):
        self.train("whole", "--after", "60u")
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 143)):
            name = f"signal{number}"
            process = self.start(name, "--after", "60u")
            self.wait_for(process, "update 10 ")
            process.send_signal(number)
            rest = process.stderr.read()
            self.assertEqual(process.wait(), status, rest)
            self.assertIn(signal.Signals(number).name, rest)
            process.stderr.close()
            run("-m", self.dir / name, tool="nmt-translate", stdin="three cats.\n")
            self.train(name, "--after", "60u")
            self.assertEqual(weights(self.dir / "whole"), weights(self.dir / name))

    def test_the_reader_of_the_log_may_leave(self):
        process = self.start("left", "--after", "60u")
        self.wait_for(process, "update 10 ")
        process.stderr.close()
        self.assertEqual(process.wait(), 0)
        self.assertTrue((self.dir / "left" / "checkpoints" / "60").exists())
        process = self.start("early", "--after", "20u")
        process.stderr.close()
        self.assertEqual(process.wait(), 0)
        # What is asked for on standard output ends with its reader.
        dump = subprocess.Popen([BIN / "nmt-train", self.en, self.de, *SMALL,
                                 "--model", self.dir / "dump", "--dump-config", "full"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        dump.stdout.close()
        self.assertEqual(dump.wait(), -signal.SIGPIPE)

    def test_keeping_all_checkpoints_needs_no_room_for_a_hundred_thousand(self):
        done = self.train("m", "--keep-last", "100000", "--after", "10u")
        self.assertNotIn("keep-last", done.stderr)

    def test_a_text_without_usable_pairs_leaves_the_old_model(self):
        self.train("m", "--after", "10u")
        before = weights(self.dir / "m")
        done = run(self.en, self.de, *SMALL, "--model", self.dir / "m", "--max-length", "1",
                   "--vocabs", self.dir / "m" / "vocab.spm", "--no-reload", status=3)
        self.assertIn("none of the", done.stderr)
        self.assertEqual(weights(self.dir / "m"), before)

    def test_a_text_without_usable_pairs_leaves_no_directory(self):
        self.train("m", "--after", "1u")
        done = run(self.en, self.de, *SMALL, "--model", self.dir / "none", "--max-length", "1",
                   "--vocabs", self.dir / "m" / "vocab.spm", status=3)
        self.assertIn("none of the", done.stderr)
        self.assertFalse((self.dir / "none").exists())

    def test_a_directory_that_moves_during_the_training(self):
        process = self.start("m", "--after", "100000u", "--save-freq", "100u")
        self.wait_for(process, "update 10 ")
        (self.dir / "m").rename(self.dir / "moved")
        self.assertRegex(process.stderr.read(), "error: .*m.*(was moved or removed during the "
                                                "training|No such file or directory)")
        self.assertEqual(process.wait(), 1)
        process.stderr.close()
        self.assertFalse((self.dir / "m").exists())
        self.train("moved", "--after", "20u")

    def test_a_model_that_takes_the_path_of_a_moved_one_stays(self):
        process = self.start("m", "--after", "20000u", "--save-freq", "300u",
                             "--valid-freq", "300u", "--seed", "2")
        self.wait_for(process, "update 10 ")
        (self.dir / "m").rename(self.dir / "moved")
        self.train("m", "--after", "10u")
        before = {path: path.read_bytes() for path in (self.dir / "m").rglob("*") if path.is_file()}
        self.assertIn("m was moved or removed during the training: another directory has its path",
                      process.stderr.read())
        self.assertEqual(process.wait(), 1)
        process.stderr.close()
        self.assertEqual({path: path.read_bytes()
                          for path in (self.dir / "m").rglob("*") if path.is_file()}, before)

    def test_a_model_made_meanwhile_stays(self):
        long = make_corpus(self.dir_in("long"), 5000)
        slow = subprocess.Popen([BIN / "nmt-train", *long, *SMALL, "--model", self.dir / "m",
                                 "--after", "10u"], stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True)
        self.wait_for(slow, "training text")
        slow.send_signal(signal.SIGSTOP)  # before it has a vocabulary
        self.train("m", "--after", "10u")
        before = weights(self.dir / "m")
        slow.send_signal(signal.SIGCONT)
        self.assertIn("another process has trained a model in", slow.stderr.read())
        self.assertEqual(slow.wait(), 2)
        slow.stderr.close()
        self.assertEqual(weights(self.dir / "m"), before)

    def test_standard_descriptors_may_be_closed(self):
        command = [BIN / "nmt-train", self.en, self.de, *SMALL, "--after", "10u", "--model"]
        subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command, self.dir / "m"],
                       check=True)
        for line in (self.dir / "m" / "train.jsonl").read_text(encoding="utf-8").splitlines():
            self.assertTrue(line.startswith("{"), line)
        out = self.dir / "out"
        subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", BIN / "nmt-translate",
                        "-m", self.dir / "m", "-i", self.en, "-o", out], check=True)
        self.assertEqual(out.read_text(),
                         run("-m", self.dir / "m", "-i", self.en, tool="nmt-translate").stdout)

    def test_names_that_are_not_utf8(self):
        name = os.fsencode(self.dir) + b"/\xff.en"
        shutil.copy(self.en, name)
        for words, option in (((name, self.de, "-m", self.dir / "m"), "train-sets"),
                              ((self.en, self.de, "-m", name + b"m"), "model")):
            done = subprocess.run([BIN / "nmt-train", *words, *SMALL, "--after", "1u"],
                                  capture_output=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"error: {option}: ".encode(), done.stderr.splitlines()[-1])
            self.assertIn(b"is not UTF-8", done.stderr.splitlines()[-1])
        self.assertFalse((self.dir / "m").exists())

    def test_a_text_that_becomes_shorter_during_the_training(self):
        process = self.start("m", "--after", "100000u")
        self.wait_for(process, "update 10 ")
        os.truncate(self.en, 0)
        self.assertIn(f"error: {self.en}: became shorter while it was read", process.stderr.read())
        self.assertEqual(process.wait(), 3)
        process.stderr.close()

    def test_starting_anew_says_how_to_go_on(self):
        process = self.start("m", "--after", "60u", "--no-reload")
        self.wait_for(process, "update 10 ")
        process.send_signal(signal.SIGTERM)
        self.assertIn("run the same training without no-reload to resume", process.stderr.read())
        self.assertEqual(process.wait(), 143)
        process.stderr.close()

    def test_checkpoints_are_never_removed_by_a_resumed_training(self):
        self.train("m", "--after", "30u", "--save-freq", "10u", "--keep-last", "9")
        model, copy = self.dir / "m", self.dir / "copy"
        there = sorted(path.name for path in (model / "checkpoints").iterdir())
        shutil.copytree(model, copy)  # follows links
        self.assertFalse((copy / "latest").is_symlink())
        self.train("copy", "--after", "40u", "--save-freq", "10u", "--keep-last", "9")
        self.assertEqual(sorted(path.name for path in (copy / "checkpoints").iterdir()),
                         sorted([*there, "40"]))
        self.train("m", "--after", "40u", "--save-freq", "10u", "--keep-last", "9")
        self.assertEqual(weights(model), weights(copy))
        (copy / "latest").unlink()
        self.train("copy", "--after", "50u", "--save-freq", "10u", "--keep-last", "9")
        self.assertLessEqual({*there, "40", "50"},
                             {path.name for path in (copy / "checkpoints").iterdir()})
        (copy / "config.json").unlink()
        done = self.train("copy", "--after", "60u", status=3)
        self.assertIn("has checkpoints but no config.json; restore it, or start anew with "
                      "no-reload or another model", done.stderr)
        self.assertTrue((copy / "checkpoints" / "50").exists())
        self.train("copy", "--after", "10u", "--no-reload")

    def test_damage_of_the_latest_checkpoint_names_a_sound_one(self):
        self.train("m", "--after", "20u", "--save-freq", "10u", "--keep-last", "9")
        model = self.dir / "m"
        with open(model / "checkpoints" / "20" / "state.safetensors", "r+b") as file:
            file.truncate(100)
        done = self.train("m", "--after", "30u", status=3)
        self.assertIn("checkpoint 10 is intact", done.stderr)
        manifest = model / "checkpoints" / "20" / "manifest.json"
        also = f" and {model}/best" if os.readlink(model / "best") == "checkpoints/20" else ""
        for damage, said in ((lambda: os.truncate(manifest, 100), "it ends after 100 bytes"),
                             (lambda: os.truncate(manifest, 0), "is empty"),
                             (manifest.unlink, "is missing")):
            damage()
            done = self.train("m", "--after", "30u", status=3)
            self.assertIn(f"{said}; checkpoint 10 is intact: remove {model}/checkpoints/20 and "
                          f"{model}/latest{also},", done.stderr)
        shutil.rmtree(model / "checkpoints" / "20")  # as the message says
        (model / "latest").unlink()
        if also:
            (model / "best").unlink()
        self.train("m", "--after", "30u")

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root can write everywhere")
    def test_a_directory_that_cannot_be_written_is_an_error_at_the_start(self):
        self.train("m", "--after", "10u")
        os.chmod(self.dir, 0o755)
        user = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
        if subprocess.run([*user, BIN / "nmt-train", "--version"],
                          capture_output=True).returncode != 0:
            self.skipTest("the programs are in a private folder, and root can write everywhere")
        for folder in (self.dir / "m", self.dir / "m" / "checkpoints"):
            os.chmod(folder, 0o555)
            command = [*user, BIN / "nmt-train", self.en, self.de, "--model", self.dir / "m",
                       *SMALL, "--after", "20u"]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            os.chmod(folder, 0o755)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("cannot be written", done.stderr)
            self.assertNotIn("update 1", done.stderr)
        new = self.dir / "m" / "a" / "b"
        os.chmod(self.dir / "m", 0o555)
        done = subprocess.run([*user, BIN / "nmt-train", self.en, self.de, "--model", new, *SMALL],
                              capture_output=True, text=True)
        os.chmod(self.dir / "m", 0o755)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"error: model: {new} cannot be created in {self.dir / 'm'}: "
                      "Permission denied", done.stderr)
        self.assertNotIn("vocabulary", done.stderr)

    def test_starting_anew_and_foreign_folders(self):
        self.train("m", "--after", "10u")
        self.train("m", "--after", "10u", "--no-reload")
        foreign = self.dir_in("foreign")
        (foreign / "thesis.tex").write_text("years of work")
        for more in ([], ["--no-reload"]):
            done = self.train("foreign", "--after", "10u", *more, status=2)
            self.assertIn("foreign", done.stderr)
        self.assertEqual(sorted(p.name for p in foreign.iterdir()), ["thesis.tex"])


if __name__ == "__main__":
    unittest.main()
