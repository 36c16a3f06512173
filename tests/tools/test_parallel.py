#!/usr/bin/env python3
"""nmt-train on two processes started by mpirun, beside one process: results, checkpoints, signals
and lost processes. The tests mostly wait, so they run several at once. Usage: test_parallel.py
BIN_DIR [test names]; skipped (77) without an MPI."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DROPOUT = ["--dropout", "0.1"]
SMALL = ["--dim-emb", "16", "--dim-rnn", "16", "--enc-depth", "1", "--dec-depth", "1",
         "--dim-vocabs", "200", "--mini-batch-words", "200",
         "--cpu-threads", "1", "--disp-freq", "10u", "--valid-freq", "20u", "--save-freq", "10u",
         "--valid-max-sentences", "10", "--early-stopping", "0", "--exponential-smoothing", "0.01",
         "--beam-size", "1", "--precision", "float32"]
MPI_FILES = tempfile.TemporaryDirectory(prefix="nmt-mpi-")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun(ranks):
    """Each keeps its files in a folder of its own: where several create or remove a shared one at
    the same time, one may fail."""
    files = tempfile.mkdtemp(dir=MPI_FILES.name)
    return ["mpirun", "--mca", "orte_tmpdir_base", files, "--oversubscribe", "--bind-to", "none",
            "-np", str(ranks)]


def tensors(path):
    """Names and values of a safetensors file of F32 tensors, read by its specification."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: struct.unpack(
        f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f",
        data[8 + length + t["data_offsets"][0]:8 + length + t["data_offsets"][1]])
            for name, t in header.items()}


def events(model, kind):
    return [e for e in map(json.loads,
                           (model / "train.jsonl").read_text(encoding="utf-8").splitlines())
            if e["event"] == kind]


def processes(model):
    """Those that train there, by the command lines that the system tells."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"nmt-train") and str(model).encode() in words:
                    rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)",
                                     (entry / "environ").read_bytes())
                    found.append((int(rank.group(1)), int(entry.name)))
        except OSError:
            pass
    return dict(found)


def make_text(folder):
    subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "300",
                    "--valid", "60", "--test", "10", "--seed", "1", folder],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([BIN / "nmt-vocab", "train", folder / "train.en", folder / "train.de",
                    "--size", "200", "--model", folder / "joint.spm"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class ParallelTest(unittest.TestCase):
    text = None  # the folder of the training text

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nmt-parallel-test-"))
        self.vocabulary = ["--vocabs", str(self.text / "joint.spm")]

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def command(self, name, ranks, *more, program=None):
        start = mpirun(ranks) if ranks > 1 else []
        return [*start, str(program or BIN / "nmt-train"), str(self.text / "train.en"),
                str(self.text / "train.de"), "--model", str(self.dir / name),
                *SMALL, *self.vocabulary, *map(str, more)]

    def train(self, name, ranks, *more, status=0, program=None):
        done = subprocess.run(self.command(name, ranks, *more, program=program),
                              capture_output=True, text=True, timeout=300, env=ENVIRONMENT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def start(self, name, ranks, *more):
        return subprocess.Popen(self.command(name, ranks, *more), stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True, env=ENVIRONMENT)

    def wait_for(self, process, text):
        told = ""
        for line in process.stderr:
            told += line
            if text in line:
                return
        self.fail(f"the program ended before '{text}':\n{told}")

    def assert_near(self, name, other, bound):
        """Weights of two checkpoints: the largest difference over the largest weight,
        tensor by tensor."""
        a, b = (tensors(self.dir / n / "latest" / "model.safetensors") for n in (name, other))
        self.assertEqual(a.keys(), b.keys())
        for tensor in a:
            difference = max(abs(x - y) for x, y in zip(a[tensor], b[tensor]))
            self.assertLessEqual(difference, bound * max(map(abs, a[tensor])), tensor)

    # docs/guide/several-machines.md states these bounds. With oneDNN, sums of fewer rows may have
    # another order.
    def test_two_processes_train_as_one(self):
        for ranks, more in ((3, ["--optimizer", "sgd", "--learn-rate", "0.5"]),
                            (2, ["--optimizer-delay", "3", "--learn-rate", "0.003"])):
            with self.subTest(ranks=ranks, more=more):
                for n in (1, ranks):
                    self.train(f"r{n}", n, *DROPOUT, *more, "--products", "own", "--after", "20u",
                               "--no-reload")
                shown = [events(self.dir / f"r{n}", "display") for n in (1, ranks)]
                self.assertEqual([len(lines) for lines in shown], [2, 2])
                # Each encodes its share of the text: what they have trained on, the rest of it, and
                # what is read ahead.
                shares = events(self.dir / f"r{ranks}", "encoded")[-1]["pairs"]
                self.assertEqual(len(shares), ranks)
                self.assertLessEqual(max(shares) - min(shares), 10)
                self.assertGreaterEqual(sum(shares), shown[1][-1]["epochs"] * 270)
                for one, several in zip(*shown):
                    for key in ("updates", "epochs", "labels", "learn_rate"):
                        self.assertEqual(one[key], several[key], key)
                    for key in ("loss", "perplexity", "gradient_norm"):
                        self.assertAlmostEqual(one[key], several[key],
                                               delta=1e-4 * one[key], msg=key)
                self.assert_near("r1", f"r{ranks}", 1e-3)

    def test_checkpoints_fit_any_number_of_processes(self):
        more = [*DROPOUT, "--optimizer", "sgd", "--learn-rate", "0.5"]
        self.train("whole", 1, *more, "--after", "30u")
        for ranks, updates in ((2, 10), (3, 20), (1, 30)):
            told = self.train("parts", ranks, *more, "--after", f"{updates}u")
            self.assertEqual("resuming at update" in told, updates > 10)
        whole, parts = (events(self.dir / name, "display") for name in ("whole", "parts"))
        self.assertEqual([(e["updates"], e["epochs"], e["labels"]) for e in whole],
                         [(e["updates"], e["epochs"], e["labels"]) for e in parts])
        self.assert_near("whole", "parts", 1e-3)

    def test_resuming_is_bit_exact_and_one_process_speaks(self):
        self.vocabulary = []  # the first process trains one
        told = self.train("whole", 2, "--after", "20u")
        self.assertEqual(told.count("saved update 20 "), 1, told)
        self.assertEqual(told.count("training text: "), 1, told)
        self.assertEqual(len(events(self.dir / "whole", "save")),
                         len(list(re.finditer("saved update", told))))
        self.train("parts", 2, "--after", "10u")
        self.train("parts", 2, "--after", "20u")
        a, b = ((self.dir / name / "latest" / "model.safetensors").read_bytes()
                for name in ("whole", "parts"))
        self.assertEqual(a, b)

    def test_more_processes_than_sentences(self):
        for ranks in (1, 3):
            self.train(f"r{ranks}", ranks, *DROPOUT, "--mini-batch", "2", "--after", "10u",
                       "--optimizer", "sgd", "--learn-rate", "0.5")
        self.assert_near("r1", "r3", 1e-3)

    def test_signals(self):
        # mpirun turns SIGTERM and SIGINT into SIGTERM and, after the time set here, SIGKILL;
        # SIGUSR1 it passes on.
        started = []
        for name, number in (("term", signal.SIGTERM), ("int", signal.SIGINT),
                             ("usr1", signal.SIGUSR1)):
            words = self.command(name, 2, "--after", "100000u", "--save-freq", "1000000u",
                                 "--valid-freq", "1000000u")
            process = subprocess.Popen([words[0], "--mca", "odls_base_sigkill_timeout", "2",
                                        *words[1:]], stderr=subprocess.PIPE, text=True,
                                       env=ENVIRONMENT)
            self.wait_for(process, "| update 20 |")
            process.send_signal(number)
            started.append((name, number, process))
        for name, number, process in started:
            with self.subTest(name):
                process.communicate(timeout=60)
                status = process.returncode
                self.assertFalse(processes(self.dir / name))
                saves = events(self.dir / name, "save")
                # SIGTERM where another process was the first to hear of it
                self.assertIn([e["reason"] for e in saves],
                              [["start", "SIGTERM"], ["start", number.name]])
                self.assertEqual(
                    status, 143) if number == signal.SIGUSR1 else self.assertNotEqual(status, 0)
                self.assertIn(f"resuming at update {saves[-1]['updates']}",
                              self.train(name, 1, "--after", "+1u").replace(",", ""))

    def lose(self, name, killed, how, *more):
        process = self.start(name, 2, "--after", "100000u", "--save-freq", "10u", *more)
        self.wait_for(process, "saved update 10 ")
        ranks = processes(self.dir / name)
        self.assertEqual(sorted(ranks), [0, 1])
        os.kill(ranks[killed], how)
        told = process.communicate(timeout=60)[1]
        self.assertNotEqual(process.returncode, 0)
        return told, ranks

    def test_a_killed_process_ends_the_training(self):
        for killed in (0, 1):
            told, ranks = self.lose(f"killed{killed}", killed, signal.SIGKILL)
            # ours, or where mpirun ends the other while it is within a call of MPI, mpirun's
            self.assertRegex(told, rf"error: .*rank {killed} \(process {ranks[killed]} on .*exited "
                                   rf"unexpectedly|process rank {killed} .* exited on signal 9")
            self.assertFalse(processes(self.dir / f"killed{killed}"))
            self.assertIn("resuming at update", self.train(f"killed{killed}", 2, "--after", "+1u"))

    def test_a_process_that_stands_still_ends_the_training(self):
        told, ranks = self.lose("still", 1, signal.SIGSTOP, "--rank-timeout", "2")
        # before an exchange, or within one
        self.assertRegex(told,
                         rf"error: rank 1 \(process {ranks[1]} on .*did not respond within 2 s")

    def test_errors(self):
        told = self.train("bad", 2, "--enc-cell", "lstmm", status=2)
        self.assertEqual(told.count("error: "), 1, told)
        self.assertFalse((self.dir / "bad").exists())
        self.vocabulary = []
        told = self.train("bad", 2, "--vocabs", self.text / "train.en", status=3)
        self.assertEqual(told.count("error: "), 1, told)
        for name in ("whole", "short"):  # folders of a file of one name
            (self.dir / name).mkdir()
        shutil.copy(self.text / "train.de", self.dir / "whole" / "target")
        (self.dir / "short" / "target").write_text("a\nb\n")
        # the first process fails, the second, both
        for failing in (0, 1, 2):
            words = self.command("one", 2)
            count = words.index("-np")
            programs = [["-np", "1", "-wdir",
                         str(self.dir / ("short" if failing in (rank, 2) else "whole")),
                         *words[count + 2:]] for rank in range(2)]
            for program in programs:
                program[program.index(str(self.text / "train.de"))] = "target"
            done = subprocess.run([*words[:count], *programs[0], ":", *programs[1]],
                                  capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 3, done.stderr)
            errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            self.assertEqual(len(errors), 1, done.stderr)
            self.assertIn("target", errors[0])
            self.assertEqual(errors[0].startswith("error: rank 1: "), failing == 1)

    def test_other_options_are_refused_before_they_matter(self):
        # Options on which messages between the processes depend; each of them, then the other one.
        words = self.command("differ", 2)
        count = words.index("-np")
        without = ["-np", "1", *words[count + 2:]]
        program = [*without, "--valid-sets", str(self.text / "valid.en"),
                   str(self.text / "valid.de")]
        for programs in ((program, without), (without, program)):
            done = subprocess.run([*words[:count], *programs[0], ":", *programs[1]],
                                  capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("error: rank 1: the settings differ", done.stderr)
        self.assertFalse((self.dir / "differ").exists())

    @unittest.skipUnless("avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text(),
                         "the processor has no bfloat16 to choose")
    def test_processes_that_choose_other_precisions_are_refused(self):
        # The second process reads the opposite answer of the measurement that decides.
        automatic = ["--precision", "auto", "--products", "own", "--after", "1u"]
        caches = [self.dir / "cache-0", self.dir / "cache-1"]
        subprocess.run(self.command("alone", 1, *automatic), check=True, capture_output=True,
                       env={**ENVIRONMENT, "XDG_CACHE_HOME": str(caches[0])})
        shutil.copytree(caches[0], caches[1])
        answers = caches[1] / "nmt/products.json"
        answers.write_text(json.dumps({key: [not answer for answer in found]
                                       for key, found in json.loads(answers.read_text()).items()}))
        program = self.dir / "nmt-train"
        program.write_text(f'#!/bin/sh\nXDG_CACHE_HOME={self.dir}/cache-$OMPI_COMM_WORLD_RANK exec '
                           f'{BIN}/nmt-train "$@"\n')
        program.chmod(0o755)
        self.assertIn("the precisions differ: set --precision",
                      self.train("two", 2, *automatic, status=2, program=program))
        self.assertFalse((self.dir / "two").exists())
        self.train("two", 2, *automatic, "--precision", "float32", program=program)

    def test_without_mpi(self):
        for part in ("bin", "lib"):
            shutil.copytree(BIN.parent / part, self.dir / part,
                            ignore=lambda _, names: [n for n in names if n.startswith(
                                "libnmt_mpi") or (n.startswith("nmt-") and n != "nmt-train")])
        told = self.train("alone", 2, status=2, program=self.dir / "bin" / "nmt-train")
        errors = [line for line in told.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, told)
        self.assertIn("OMPI_COMM_WORLD_SIZE=2", errors[0])
        self.assertFalse((self.dir / "alone").exists())

    def test_alone_loads_no_mpi(self):
        process = self.start("alone", 1, "--after", "100000u")
        self.wait_for(process, "saved update 10 ")
        maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
        process.kill()
        process.communicate()
        self.assertIn("libnmt_core", maps)
        self.assertNotRegex(maps, r"libmpi|libnmt_mpi|libopen-pal")


class AtOnce(unittest.TestSuite):
    def run(self, result, debug=False):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda test: test(result), self))
        return result


if __name__ == "__main__":
    if not shutil.which("mpirun") or not (BIN.parent / "lib" / "libnmt_mpi.so").exists():
        print("no mpirun, or built without MPI")
        sys.exit(77)
    loader = unittest.TestLoader()
    loader.suiteClass = AtOnce
    with tempfile.TemporaryDirectory() as folder:
        ParallelTest.text = pathlib.Path(folder)
        make_text(ParallelTest.text)
        tests = (AtOnce([ParallelTest(name) for name in sys.argv[1:]]) if sys.argv[1:]
                 else loader.loadTestsFromTestCase(ParallelTest))
        sys.exit(not unittest.TextTestRunner().run(tests).wasSuccessful())
