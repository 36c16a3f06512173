#!/usr/bin/env python3
"""scripts/bench/gpu_check.sh --emulated in a portable folder: every part finishes although it is
killed and stopped by its limit on the way, nothing finished is repeated, and failures show.
Usage: test_gpu_check.py FOLDER_OF_PROGRAMS, with the emulator inside."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
BUILD = next(p for p in PROGRAMS.parents if (p / "lib").is_dir())
BENCH = ROOT / "scripts/bench"
sys.path.insert(0, str(BENCH / "gpu"))
import profiles  # noqa: E402

# Stand-ins for NVIDIA's tools: they run the program and print what the tools print.
SANITIZER = """#!/bin/bash
while [[ $1 == --* ]]; do shift 2; done
"$@"; status=$?
for name in $PLANTED; do \
[[ $* == *$name* ]] && { echo "========= ERROR SUMMARY: 2 errors"; exit 9; }; done
echo "========= ERROR SUMMARY: 0 errors"; exit $status
"""
NCU = """#!/bin/bash
echo '==PROF== Connected'
echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
echo '"0","fill_kernel(float*)","gpu__time_duration.sum","us","12.5"'
echo '"0","fill_kernel(float*)","launch__registers_per_thread","register/thread","24"'
"""


# The same where they have no access to the GPU.
REFUSING = """#!/bin/bash
echo "$0 $*" >> "$CALLS"
echo '========= COMPUTE-SANITIZER'
echo '==ERROR== The user does not have permission to access the counters'
echo '========= ERROR SUMMARY: 0 errors'
exit 1
"""


class GpuCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.portable, cls.tools, cls.empty = (cls.folder / name
                                              for name in ("portable", "tools", "empty"))
        cls.made = subprocess.run(["bash", BENCH / "make_portable.sh", "--no-cuda-libs",
                                   "--emulator", "--max-mib", "224", BUILD, cls.portable],
                                  capture_output=True, text=True)
        for folder in (cls.tools, cls.empty):
            folder.mkdir()
        for name, text in (("compute-sanitizer", SANITIZER), ("ncu", NCU)):
            (cls.tools / name).write_text(text)
            (cls.tools / name).chmod(0o755)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def command(self, *args):
        return ["bash", str(self.portable / "scripts/bench/gpu_check.sh"), str(self.portable),
                "--emulated", "--tools", str(self.tools), *map(str, args)]

    def environment(self, **more):
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.folder),
                "TMPDIR": str(self.folder), **more}

    def check(self, *args, **more):
        return subprocess.run(self.command(*args), capture_output=True, text=True, timeout=600,
                              cwd=self.empty, env=self.environment(**more))

    def steps(self, folder, part):
        return json.loads((folder / f"part-{part}.json").read_text())["steps"]

    def test_the_portable_folder_is_small_and_complete(self):
        self.assertEqual(self.made.returncode, 0, self.made.stderr)
        names = {path.name for path in (self.portable / "lib").iterdir()}
        self.assertFalse([name for name in names
                          if name.startswith(("libcublas", "libcudnn", "libnccl", "libopenblas"))])
        for program in (self.portable / "bin").glob("nmt-*"):
            listed = subprocess.run(["ldd", program], capture_output=True, text=True,
                                    env={"PATH": "/usr/bin:/bin"}).stdout
            for line in listed.splitlines():
                if ("=>" in line
                    and not any(name in line for name in ("libc.so", "libm.so", "libdl.so",
                                                          "libpthread.so", "librt.so"))):
                    self.assertIn(str(self.portable), line, program.name)
        # What is carried to a machine is without the emulator.
        carried = subprocess.run(["bash", BENCH / "make_portable.sh", "--no-cuda-libs",
                                  "--max-mib", "60", BUILD, self.folder / "carried"],
                                 capture_output=True, text=True)
        self.assertEqual(carried.returncode, 0, carried.stderr)
        small = subprocess.run(["bash", BENCH / "make_portable.sh", "--no-cuda-libs",
                                "--max-mib", "2", BUILD, self.folder / "small"],
                               capture_output=True, text=True)
        self.assertEqual(small.returncode, 1)
        self.assertRegex(small.stderr,
                         r"make_portable.sh: .*small: \d+ MiB, more than 2 MiB; the largest files:")

    def test_parts_that_are_killed_and_stopped_continue(self):
        out = self.folder / "results"
        # Part 1 is killed as soon as a group of tests is in its report.
        process = subprocess.Popen(self.command("--only", 1, "--out", out),
                                   stdout=subprocess.DEVNULL, cwd=self.empty,
                                   env=self.environment(), start_new_session=True)
        report = out / "part-1.json"
        for _ in range(3000):
            if (process.poll() is not None
                or (report.exists()
                    and self.steps(out, 1).get("parity of kernels", {}).get("result"))):
                break
            time.sleep(0.02)
        self.assertIsNone(process.poll(), "part 1 ended before it could be killed")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        before = self.steps(out, 1)
        done = self.check("--only", 1, "--out", self.folder / "second", "--previous", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("parity of kernels:", done.stdout, "a finished step was repeated")
        shutil.copy(self.folder / "second/part-1.json", out)
        steps = self.steps(out, 1)
        self.assertEqual(steps["parity of kernels"], before["parity of kernels"])
        self.assertRegex(steps["parity of models"]["result"], r"^[1-9]\d* tests passed$")

        # Part 4 takes longer than its limit, so it needs several calls. On a slow machine one
        # training alone takes longer, which is a failure: such a machine gets a higher limit.
        calls, limit, again = 0, 10, []
        while True:
            calls += 1
            done = self.check("--only", 4, "--updates", 12, "--out", out, "--limit", limit, *again)
            again = []
            if done.returncode == 1 and limit < 300:
                failed = [step["result"]
                          for step in self.steps(out, 4).values() if not step.get("ok", True)]
                self.assertTrue(all("takes more than" in result for result in failed), failed)
                limit, again = 4 * limit, ["--again"]
                continue
            if done.returncode != 3:
                break
            self.assertIn("the time is over: the same command again continues", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(calls, 1)
        self.assertEqual(len(json.loads((out / "part-4.json").read_text())["runs"]), calls)

        for part in (2, 3, 5):
            done = self.check("--only", part, "--out", out)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(all(row["ms"] >= 0
                            for row in self.steps(out, 2)["nmt-bench, float32"]["rows"].values()))
        self.assertRegex(self.steps(out, 5)["racecheck"]["result"],
                         r"^[1-9]\d* tests passed, no error$")
        self.assertEqual(self.steps(out, 3)["ncu: lrn forward"]["launches"][0]["registers"],
                         "24 register/thread")
        (out / "report.md").unlink()
        self.assertLessEqual(len(list(out.iterdir())), 8)

        page = self.folder / "page.md"
        joined = subprocess.run(["bash", BENCH / "gpu_check.sh", "--join", out, page],
                                capture_output=True, text=True)
        text = page.read_text(encoding="utf-8")
        self.assertEqual(joined.returncode, 0, text)
        for words in ("the emulator: no GPU has run any of this", " on cuda:0 (",
                      "| training: cuda | 12 updates, loss ",
                      "| loss of cuda within 3 % of the CPU's | yes",
                      "| loss with cuDNN's layers within 3 % of ours | yes",
                      "| update | cpu | cuda | cuda, bfloat16 |", "predicted, ms",
                      "| pointwise/fill ", "| memcheck of whole models | ",
                      "| 1 | tests | the emulator: no GPU has run any of this | finished | 0 |",
                      "| LRN recurrence, forward, share of the copy rate | 70 % | 85 % | not "
                      "measured |"):
            self.assertIn(words, text)
        self.assertNotIn("FAILED", text)

    def test_failures_show_and_can_be_repeated(self):
        out = self.folder / "failing"
        done = self.check("--only", 5, "--out", out, PLANTED="top_k_nan")
        names = self.steps(out, 5)["memcheck"]
        planted = [name for name in names["failed"] if "top_k" in name]
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertTrue(planted and len(names["failed"]) < len(names["failed"])
                        + len(names["passed"]), names)
        self.assertIn("2 errors", names["failed"][planted[0]])
        self.assertEqual(self.check("--only", 5, "--out", out).returncode, 1,
                         "a failed step was forgotten")
        self.assertEqual(self.check("--only", 5, "--out", out, "--again").returncode, 0)

    def test_tools_that_do_not_work_are_asked_once(self):
        out, calls, refusing = (self.folder / name
                                for name in ("without_tools", "calls", "refusing"))
        refusing.mkdir()
        for name in ("compute-sanitizer", "ncu"):
            (refusing / name).write_text(REFUSING)
            (refusing / name).chmod(0o755)
        for part, count, steps in ((5, 1, ("racecheck", "memcheck", "initcheck", "synccheck",
                                           "memcheck of whole models")),
                                   (3, 2, [f"ncu: {kernel}" for kernel in profiles.KERNELS])):
            done = self.check("--only", part, "--out", out, "--tools", refusing, CALLS=str(calls))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(len(calls.read_text().splitlines()), count, calls.read_text())
            for step in steps:
                self.assertRegex(self.steps(out, part)[step]["result"],
                                 "^not run: (compute-sanitizer|ncu) does not work on this machine: "
                                 "The user does not have permission")

    def test_a_tool_that_hangs_ends_the_steps_that_need_it(self):
        out, hanging = self.folder / "hanging_out", self.folder / "hanging"
        hanging.mkdir()
        (hanging / "compute-sanitizer").write_text("#!/bin/sh\nexec sleep 1000\n")
        (hanging / "compute-sanitizer").chmod(0o755)
        self.check("--only", 5, "--out", out, "--tools", hanging, "--limit", 10)
        self.assertIn("does not end within the time of this part",
                      self.steps(out, 5)["racecheck"]["result"])

    # On the CPU and with small sizes, since the emulator's speed says nothing; the command lines
    # are those of a GPU but for the device.
    def test_comparisons_with_pytorch(self):
        pythons = [path for path in (pathlib.Path(sys.executable), ROOT / ".venv/bin/python")
                   if path.exists()]
        python = next((p for p in pythons
                       if subprocess.run([p, "-c", "import torch, numpy, sentencepiece"],
                                         capture_output=True).returncode == 0), None)
        if not python:
            self.skipTest("no Python with torch, numpy and sentencepiece")
        out = self.folder / "comparisons"
        command = [python, BENCH / "gpu_check.py", BUILD, "--emulated", "--tools", self.tools,
                   "--only", 3, "--out", out]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=600, cwd=self.empty, env=self.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        steps = self.steps(out, 3)
        for precision in ("bfloat16", "float32"):
            times = steps[f"layers and torch.nn, {precision}"]["times"]
            self.assertEqual(times["precision"], precision)
            self.assertLessEqual({"lrn activation=tanh", "gru reset=after",
                                  "gru reset=after groups 4", "lstm input=xh"}, set(times["ours"]))
            self.assertEqual(set(times["torch"]),
                             {"torch.nn.GRU float32", "torch.nn.LSTM float32", "LRN loop, eager"})
            self.assertRegex(steps[f"training and PyTorch, {precision}"]["text"],
                             r"\nratio: \d+\.\d+\n")

    # ncu sees the names of functions; sizes of rows are smaller with --quick.
    def test_profiled_kernels_are_those_of_their_rows(self):
        listed = subprocess.run([PROGRAMS / "nmt-bench", "--list"], capture_output=True, text=True,
                                check=True).stdout.splitlines()
        for name, (row, pattern, options) in profiles.KERNELS.items():
            with self.subTest(name):
                self.assertTrue([line for line in listed if re.search(row, line)],
                                f"nmt-bench has no row {row}")
                quick = (re.sub(r"(?: [A-Z] \d+)+$", " ", row) if not row.startswith("^decoding")
                         else "^decoding/tiny gru float32 batch 1 beam 1")
                names = self.folder / "kernels"
                names.unlink(missing_ok=True)
                subprocess.run([PROGRAMS / "nmt-bench", "--device", "cuda", "--quick",
                                "--cpu-threads", "1", "--filter", quick, *options],
                               check=True, capture_output=True, text=True,
                               env=self.environment(NMT_EMULATED_KERNELS=str(names)))
                launched = names.read_text().splitlines()
                self.assertTrue([kernel for kernel in launched if re.search(pattern, kernel)],
                                f"{pattern} is none of {launched}")

    def test_what_is_refused(self):
        for args, more, status, message in ((("--only", 1), {"NMT_EMULATED_DEVICES": "0"}, 2,
                                             "there is no GPU to test: there is no CUDA device"),
                                            (("--only", 6), {}, 2, "invalid choice"),
                                            (("--limit", 5), {}, 2, "at least 10 seconds"),
                                            (("--only", 1, "--without-gpu"), {}, 2,
                                             "--without-gpu needs --only 4")):
            done = self.check("--out", self.folder / "refused", *args, **more)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn(message, done.stderr)
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "part-1.json").write_text("{")
        done = self.check("--only", 1, "--out", broken)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr,
                         r"part-1.json: not a report of part 1: .*; remove the file to start again")

    def test_libraries_are_found_in_python_packages(self):
        site = self.folder / "site"
        for place in ("nvidia/cu13/lib/libcublas.so.13", "nvidia/cu13/lib/libcublasLt.so.13",
                      "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/nccl/lib/libnccl.so.2",
                      "nvidia/cu12/lib/libcublas.so.12"):
            (site / place).parent.mkdir(parents=True, exist_ok=True)
            (site / place).touch()
        code = ("import json, pathlib, libraries; l = libraries.Libraries(pathlib.Path('/none'), "
                "13); print(json.dumps([l.found, l.path]))")
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 check=True, cwd=BENCH / "gpu",
                                 env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site),
                                      "LD_LIBRARY_PATH": "/given"}).stdout
        found, path = json.loads(printed)
        self.assertEqual(found["libcublas"], str(site / "nvidia/cu13/lib/libcublas.so.13"))
        self.assertEqual(found["libcudnn"], str(site / "nvidia/cudnn/lib/libcudnn.so.9"))
        self.assertEqual(
            path, f"/given:{site}/nvidia/cu13/lib:{site}/nvidia/cudnn/lib:{site}/nvidia/nccl/lib")


if __name__ == "__main__":
    unittest.main()
