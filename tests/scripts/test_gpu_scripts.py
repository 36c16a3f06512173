#!/usr/bin/env python3
"""The parts of scripts/bench/gpu_check.sh that need neither a GPU nor the emulator: predictions,
the search for NVIDIA's tools, the table of goals, and joining reports of several devices.
tests/device/test_gpu_check.py runs the whole procedure.

Usage: test_gpu_scripts.py FOLDER_OF_THE_PROGRAMS"""
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "scripts/bench"
sys.path[:0] = [str(BENCH), str(BENCH / "gpu")]
import bench  # noqa: E402
import goals  # noqa: E402
import gpu_check  # noqa: E402
import parts  # noqa: E402
import predictions  # noqa: E402
import report  # noqa: E402
import tools  # noqa: E402
import training  # noqa: E402
from state import Refused, State  # noqa: E402

H100, H200 = "NVIDIA H100 80GB HBM3, 570.10, 81559 MiB", "NVIDIA H200, 570.10, 143771 MiB"


def measured(ms, share=0.0, floor_ms=0.0, **more):
    return {"table": "t", "name": "n", "bound": "memory", "ms": ms, "share": share,
            "floor_ms": floor_ms, "flops": 0.0, "bytes": 0.0, "extras": {}, **more}


def write(folder, part, device, steps, begin="2026-01-01 00:00 UTC", finished=True):
    """A made-up report of a part."""
    state = State(folder, part)
    state.data.update(machine={"device": device, "log": f"nmt-score on {device}", "version": "nmt",
                               "libraries": {"libcublas": "/lib"}},
                      runs=[{"begin": begin, "seconds": 5.0}], finished=finished)
    for name, step in steps.items():
        state.data["steps"][name] = {"result": "done", "ok": True, "seconds": 1.0, **step}
    state.write()
    return state


def page_of(*folders):
    return report.page(folders)


class Predictions(unittest.TestCase):
    def test_launches_of_recurrences(self):
        # As tests/emulator/dry/recurrence_test.cpp counts them, in float32 (docs/design/cuda.md).
        for unit, forward, backward in (("gru reset=after", 64, 65), ("rnn", 64, 65),
                                        ("atr forget-gate=paper input-gate=own", 64, 65),
                                        ("lstm input=xh", 64, 66),
                                        ("ran activation=tanh", 64, 66), ("slstm", 64, 67),
                                        ("gru reset=before", 128, 129), ("srn", 96, 98),
                                        ("lrn activation=tanh", 1, 1), ("lstm input=x", 1, 1),
                                        ("mingru", 1, 1), ("sru", 1, 4),
                                        ("elstm1 input=xh", 64, 70),
                                        ("elstm2 input=x", 1, 5)):
            for direction, expected in (("forward", forward), ("backward", backward)):
                self.assertEqual(predictions.launches(
                    f"recurrences/{unit} {direction} T 32 B 128 H 1024", "float32"), expected, unit)
        for unit in ("gru reset=before", "lstm input=xh", "slstm", "srn"):
            for direction in ("forward", "backward"):
                self.assertEqual(predictions.launches(f"recurrences/{unit} persistent {direction} "
                                                      "T 32 B 128 H 1024", "float32"), 1)
        # The initial state is rounded for the first product; srn multiplies late values, which are
        # rounded where they are computed.
        for row, expected in (("gru reset=before forward", 129), ("gru reset=before backward", 129),
                              ("srn forward", 96), ("lrn activation=tanh forward", 1)):
            self.assertEqual(predictions.launches(f"recurrences/{row} T 32 B 128 H 1024",
                                                  "bfloat16"), expected, row)

    def test_every_unit_with_a_recurrent_product_is_counted(self):
        program = next((path for path in (PROGRAMS / "emulated/nmt-bench", PROGRAMS / "nmt-bench")
                        if path.exists()), None)
        listed = subprocess.run([program, "--list", "--device", "cuda",
                                 "--filter", "^recurrences/"], capture_output=True, text=True)
        if listed.returncode != 0:
            self.skipTest("no nmt-bench with the emulator")
        for row in listed.stdout.splitlines():
            # these units alone have rows of this width
            if row.startswith("recurrences/") and row.endswith("forward T 32 B 128 H 512"):
                self.assertGreater(predictions.launches(row, "float32"), 1, row)

    def test_a_decoding_step_at_batch_1_reads_the_weights(self):
        weights = 92.5e6
        for precision, size, expected in (("bfloat16", 2, 0.160), ("float32", 4, 0.203)):
            row = measured(1, flops=2 * weights, bytes=size * weights)
            ms, reason = predictions.predict(
                f"decoding/wmt14-en-de-lrn olrn {precision} batch 1 beam 1", row, precision, H200)
            self.assertAlmostEqual(ms, expected, places=3)
            self.assertEqual(reason, "39 kernels, memory")
        self.assertIsNone(predictions.predict(
            "decoding/wmt14-en-de-lrn olrn float32 batch 32 beam 1", row, "float32", H200))


class Tools(unittest.TestCase):
    def test_the_newest_version_of_nsight_compute(self):
        with tempfile.TemporaryDirectory() as temporary:
            root = pathlib.Path(temporary)
            self.assertIsNone(tools.find("no-such-tool", root))
            for version in ("2024.3.2", "2025.3.1", "2025.10.0", "2026.1.0"):
                (root / version).mkdir()
                path = root / version / "no-such-tool"
                path.write_text("#!/bin/sh\n")
                path.chmod(0o755)
            (root / "2026.1.0/no-such-tool").chmod(0o644)  # not a program
            self.assertEqual(tools.find("no-such-tool", root), str(root / "2025.10.0/no-such-tool"))


class Sanitized(unittest.TestCase):
    def test_every_pattern_names_a_test_of_the_gpu(self):
        tests = PROGRAMS / "cuda_emulated_tests"
        if not tests.exists():
            self.skipTest("a build without the emulator")
        for pattern in parts.SANITIZED.split(":"):
            listed = subprocess.run([tests, "--gtest_list_tests", f"--gtest_filter={pattern}"],
                                    capture_output=True, text=True, timeout=60)
            names = [line.split()[0]
                     for line in listed.stdout.splitlines() if line.startswith("  ")]
            self.assertTrue(names, pattern)
            self.assertTrue(all(name.startswith("CpuAndCudaAgree/") for name in names), names)


class Goals(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def table(self, *folders):
        text = page_of(*folders)[0]
        lines = text[text.index("## Goals"):].split("\n\n")[1].splitlines()
        self.assertEqual(lines[0], "| goal | must | aim | measured |")
        return {cells[0]: cells[1:]
                for cells in ([cell.strip() for cell in line.strip("|").split("|")]
                              for line in lines[2:])}

    def test_values_come_from_the_reports(self):
        write(self.folder, 2, H100,
              {"nmt-bench, goals, float32": {"precision": "float32", "rows": {
                  "recurrences/lrn activation=tanh forward T 32 B 128 H 1024": measured(0.02, 0.8),
                  "recurrences/lrn activation=tanh backward T 32 B 128 H 1024": {"error": "wrong"},
                  "decoding/wmt14-en-de-lrn olrn float32 batch 1 beam 4": measured(0.6,
                                                                                   floor_ms=0.2)}},
               "nmt-bench, goals, bfloat16": {"precision": "bfloat16", "rows": {
                   "step/wmt14-en-de-lrn olrn B 128 T 32: whole step": measured(10, 0.25),
                   "step/wmt14-en-de-lrn gru B 128 T 32: whole step": measured(18, 0.2),
                   "decoding/wmt14-en-de-lrn olrn bfloat16 batch 128 beam 4": measured(
                       0.5, floor_ms=0.2)}}})
        write(self.folder, 3, H100, {
            "layers and torch.nn, bfloat16": {
                "times": {"ours": {"lrn activation=tanh": 0.1, "gru reset=after": 1.0,
                                   "gru reset=after groups 4": 0.5},
                          "torch": {"torch.nn.GRU float32": 0.9, "torch.nn.GRU float16": 0.6,
                                    "torch.nn.GRU bfloat16": 0.7, "torch.nn.LSTM float16": 0.3,
                                    "LRN loop, eager": 4.0}}},
            "LRN and a compiled loop, bfloat16": {"times": {"ours": {"lrn activation=tanh": 0.1},
                                                            "torch": {"LRN loop, compiled": 0.5}}},
            "layers and torch.nn, float32": {"times": {"ours": {"lstm input=xh": 2.0},
                                                       "torch": {"torch.nn.LSTM float32": 1.0}}}})
        write(self.folder, 4, H100,
              {"training: cuda": {"memory": {"peak_mb": 30, "model_mb": 20.0}}})
        table = self.table(self.folder)
        self.assertEqual(len(table), len(goals.GOALS))
        for goal, cells in {
                "LRN recurrence, forward, share of the copy rate": ["70 %", "85 %", "80 %"],
                "LRN recurrence, backward, share of the copy rate": ["65 %", "80 %",
                                                                     "not measured"],
                "LRN layer, bfloat16, over the fastest torch.nn.GRU": ["2.5x", "5x", "6.00x"],
                "LRN layer, bfloat16, over torch.nn.LSTM in float16": ["1.5x", "2.5x", "3.00x"],
                "LRN layer, bfloat16, over a loop in PyTorch, eager": ["20x", "50x", "40.00x"],
                "LRN layer, bfloat16, over a loop in PyTorch, compiled": ["3x", "6x", "5.00x"],
                "GRU layer, bfloat16, over cuDNN's GRU (faster of float16 and bfloat16)": [
                        "0.9x", "1.3x", "0.60x"],
                "GRU layer, float32, over cuDNN's GRU (float32)": ["0.9x", "1.3x", "not measured"],
                "LSTM layer, bfloat16, over cuDNN's LSTM (faster of float16 and bfloat16)": [
                        "0.5x", "0.9x", "not measured"],
                "LSTM layer, float32, over cuDNN's LSTM (float32)": ["0.5x", "0.9x", "0.50x"],
                "GRU layer with 4 groups, bfloat16, over cuDNN's GRU (faster of float16 and "
                "bfloat16)": ["2x", "4x", "1.20x"],
                "training step of deep oLRN, bfloat16, share of the product peak": ["20 %", "30 %",
                                                                                    "25 %"],
                "training step, oLRN over GRU, bfloat16": ["1.6x", "2.3x", "1.80x"],
                "decoding step over its roofline, batch 128, beam 4, bfloat16": [
                        "at most 4x", "at most 2x", "2.50x"],
                "decoding step over its roofline, batch 1, beam 4, float32": [
                        "at most 6x", "at most 3x", "3.00x"],
                "decoding step over its roofline, batch 1, beam 4, bfloat16": [
                        "at most 6x", "at most 3x", "not measured"],
                "decoding, tensors at peak over the model's bytes": ["at most 2x", "at most 1.4x",
                                                                     "1.50x"]}.items():
            self.assertEqual(table[goal], cells, goal)

    def test_without_values_nothing_is_measured(self):
        write(self.folder, 1, H100, {"parity of kernels": {}})
        self.assertEqual({cells[2] for cells in self.table(self.folder).values()}, {"not measured"})

    def test_values_of_several_devices_name_them(self):
        for device in (H100, H200):
            share = 0.8 if device == H100 else 0.6
            write(self.folder / device[:11], 2, device, {"nmt-bench, goals, float32": {
                "precision": "float32", "rows": {"recurrences/lrn activation=tanh forward T 32 B "
                                                 "128 H 1024": measured(0.02, share)}}})
        table = self.table(self.folder / H100[:11], self.folder / H200[:11])
        self.assertEqual(table["LRN recurrence, forward, share of the copy rate"][2],
                         "80 % (NVIDIA H100 80GB HBM3); 60 % (NVIDIA H200)")

    def test_memory_of_a_translation(self):
        (self.folder / "latest").mkdir()
        (self.folder / "latest/model.safetensors").write_bytes(bytes(2_500_000))
        log = ("GPU memory: 5 MB of tensors at peak, 8 MB reserved, 900 of 81000 MB of the device "
               "in use")
        self.assertEqual(training.memory_of(log, self.folder),
                         {"memory": {"peak_mb": 5, "model_mb": 2.5}})
        self.assertEqual(training.memory_of("no GPU", self.folder), {})


class Join(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.one, self.other = (pathlib.Path(self.temporary.name) / name
                                for name in ("one", "other"))

    def test_parts_of_different_devices(self):
        for part in (1, 2, 3):
            write(self.one, part, H100, {f"step {part}": {}})
        for part in (4, 5):
            write(self.other, part, H200, {f"step {part}": {}})
        page = self.one / "page.md"
        command = ["bash", str(BENCH / "gpu_check.sh"), "--join", str(self.one),
                   str(self.other), str(page)]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        text = page.read_text(encoding="utf-8")
        for words in (f"Device: {H100}; {H200}.\n", f"| 1 | tests | {H100} | finished | 0 | 5 |",
                      f"| 5 | memory checks | {H200} | finished | 0 | 5 |",
                      "## Part 4: training\n", f"First log line on {H200}: `nmt-score on {H200}`"):
            self.assertIn(words, text)
        self.assertEqual([device in text[text.index(f"## Part {part}"):][:400]
                          for part, device in ((1, H100), (3, H100), (4, H200), (5, H200))],
                         [True] * 4)

    def test_the_output_of_a_failed_comparison_stands_once(self):
        output = "".join(f"row {n}: 1.0 ms\n" for n in range(1000)) + "the last row is wrong\n"
        failed = {"ok": False, "result": "FAILED (status 1)", "detail": output[-6000:],
                  "text": output[-12000:]}
        write(self.one, 3, H100, {"layers, bfloat16": failed, "tests": {**failed, "text": ""}})
        text = page_of(self.one)[0]
        for name in ("layers, bfloat16", "tests"):
            self.assertEqual(text.count(f"### {name}: FAILED (status 1)\n"), 1, name)
        self.assertEqual(text.count("the last row is wrong"), 2)

    def test_one_part_of_two_devices_stands_twice(self):
        for part in range(1, 6):
            write(self.one, part, H100, {"step": {}}, finished=part != 2)
        write(self.other, 2, H200, {"step": {}})
        text, good = page_of(self.one, self.other)
        self.assertTrue(good, "part 2 is finished on one device")
        for words in (f"## Part 2: benchmarks, {H100}\n", f"## Part 2: benchmarks, {H200}\n",
                      f"| 2 | benchmarks | {H100} | unfinished |",
                      f"| 2 | benchmarks | {H200} | finished |"):
            self.assertIn(words, text)
        self.assertFalse(page_of(self.one)[1])

    def test_of_a_report_and_its_continuation_the_longer_one(self):
        first = write(self.one, 1, H100, {"early": {}}, finished=False)
        longer = State(self.other, 1)
        longer.data = {**first.data, "finished": True,
                       "runs": [*first.data["runs"],
                                {"begin": "2026-01-02 00:00 UTC", "seconds": 1.0}]}
        longer.write()
        for folders in ((self.one, self.other), (self.other, self.one), (self.other, self.other)):
            self.assertEqual(page_of(*folders)[0].count("## Part 1: tests"), 1)
            self.assertIn("| 1 | tests | " + H100 + " | finished |", page_of(*folders)[0])

    def test_what_is_refused(self):
        write(self.one, 1, H100, {"step": {}})
        self.other.mkdir()
        for arguments, message in ((["--join", self.one, self.other, "/none/page"],
                                    "there is no report (part-N.json)"),
                                   (["--join", self.one], "expected FOLDER... PAGE")):
            done = subprocess.run(["bash", str(BENCH / "gpu_check.sh"), *map(str, arguments)],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)

    def test_a_report_of_another_model_is_not_continued(self):
        class Fake(gpu_check.Check):
            def __init__(self, state, device):
                self.state, self.device = state, device
                self.options = types.SimpleNamespace(without_gpu=False, emulated=False)

        state = write(self.one, 1, H100, {"step": {}})
        Fake(state, "").same_model(H100.replace("570.10", "580.20"))  # another driver
        Fake(state, "").same_model("")
        with self.assertRaisesRegex(Refused, "begun on NVIDIA H100.*, and this is NVIDIA H200.*; "
                                             "another --out without --previous"):
            Fake(state, "").same_model(H200)


class Bench(unittest.TestCase):
    """Rows that another step has measured in the same precision are not repeated."""

    def test_known_rows(self):
        with tempfile.TemporaryDirectory() as temporary:
            state = State(temporary, 2)
            state.data["steps"]["nmt-bench, goals, float32"] = {"precision": "float32",
                                                                "rows": {"layers/a": measured(1)}}
            ran = []

            class Runner:
                def run(self, command, limit, on_line=None, env=None):
                    if "--list" in command:
                        text = "layers/a\nmatrix-states/b\n"
                    else:
                        ran.append(command[-1])
                        on_line(
                            "table,name,ms,median_ms,deviation_ms,flops,bytes,floor_ms,bound,"
                            "share,peak_flops_per_s,copied_bytes_per_s,read_bytes_per_s,"
                            "extras,error\n")
                        on_line("matrix-states,b,1,1,0,0,0,0,,0,0,0,0,,\n")
                    return types.SimpleNamespace(status=0, text=text if "--list" in command else "",
                                                 seconds=0.1, late=False)

                def begins_early(self):
                    return False

            check = types.SimpleNamespace(state=state, runner=Runner(), program=lambda name: name)
            bench.measure(check, "nmt-bench, float32", ["^"], "float32")
            self.assertEqual(ran, ["^(matrix-states/b)$"])
            self.assertEqual(state.data["steps"]["nmt-bench, float32"]["result"], "1 rows")


if __name__ == "__main__":
    unittest.main()
