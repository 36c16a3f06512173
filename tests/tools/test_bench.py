#!/usr/bin/env python3
"""nmt-bench runs: every table has rows, each compared with its slow reference, and the three
formats say the same. Usage: test_bench.py FOLDER_OF_PROGRAMS"""
import csv
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/bench"))
import processor_table  # noqa: E402

BENCH = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                     else "build/bin").resolve() / "nmt-bench"
TABLES = ["processor", "products", "products packed before", "zeros", "recurrences",
          "matrix-states", "layers", "groups", "attention", "softmax", "pointwise", "optimizer",
          "training", "mixed", "step", "growth", "decoding"]
# Rows that the emulator runs in seconds.
EMULATED = ("^(products.*|(recurrences|layers)/(lrn activation=tanh|gru reset=before) "
            ".*|matrix-states/gdn "
            ".*|attention/.*|softmax/.*|pointwise/.*|optimizer/.*|(training|step)/tiny "
            "lrn.*|growth/.*|decoding/.*batch 1.*)")
UNITS = pathlib.Path(__file__).resolve().parents[2] / "src/units/units.def"


def run(*args, status=0):
    done = subprocess.run([BENCH, *map(str, args)], capture_output=True, text=True, timeout=300)
    if done.returncode != status:
        raise AssertionError(f"{args}: status {done.returncode}, not {status}\n"
                             f"{done.stdout[-3000:]}{done.stderr}")
    return done


class BenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document = json.loads(run("--quick", "--format", "json", "--cpu-threads", 1).stdout)
        cls.rows = cls.document["benchmarks"]

    def test_every_table_has_rows_that_agree_with_their_references(self):
        self.assertEqual(list(dict.fromkeys(row["table"] for row in self.rows)), TABLES)
        for row in self.rows:
            self.assertNotIn("error_occurred", row)
            self.assertGreaterEqual(row["real_time"], 0, row["name"])
        lines = len(re.findall(r"^NMT_UNIT\(", UNITS.read_text(), re.M))
        self.assertEqual(sum(row["table"] == "recurrences" for row in self.rows), 2 * lines,
                         "forward and backward of every line of units.def")
        matrix = len(re.findall(r"^NMT_MATRIX_STATE_UNIT\(", UNITS.read_text(), re.M))
        self.assertEqual(sum(row["table"] == "matrix-states" for row in self.rows), 6 * matrix,
                         "both passes of a batch, of a document, and of one head")

    def test_head_says_where(self):
        self.assertEqual({"date", "program", "processor", "caches", "kernels", "clock",
                          "arithmetic", "copying", "reading"} - self.document["context"].keys(),
                         set())
        self.assertIn("1 thread,", self.document["context"]["program"])

    def test_share_is_the_floor_over_the_time(self):
        for row in self.rows:
            if row["flops"] and not row["bytes"]:
                floor = 1e3 * row["flops"] / row["peak_flops_per_second"]
                self.assertAlmostEqual(row["floor"] / floor, 1, places=6, msg=row["name"])
                self.assertAlmostEqual(row["share"] * row["real_time"] / floor, 1, places=6,
                                       msg=row["name"])

    def test_work_of_a_recurrence(self):
        # speed.md's count for oLRN: four planes in and one out, then ten back.
        for name, planes in (("olrn forward", 5), ("olrn backward", 10),
                             ("lrn activation=tanh forward", 4),
                             ("lrn activation=tanh backward", 8)):
            row = next(row for row in self.rows if row["table"] == "recurrences"
                       and row["name"].startswith(name))
            t, b, h = map(int, re.search(r"T (\d+) B (\d+) H (\d+)", row["name"]).groups())
            self.assertEqual(row["bytes"], planes * t * b * h * 4)

    def test_parts_are_the_step(self):
        parts = [row for row in self.rows if row["table"] == "step" and "lrn" in row["name"]
                 and "whole" not in row["name"]]
        self.assertIn("softmax and loss", " ".join(row["name"] for row in parts))
        self.assertAlmostEqual(sum(row["extras"]["per cent of the step"] for row in parts),
                               100, places=3)

    def test_filter_formats_and_out(self):
        text = run("--quick", "optimizer", 1).stdout
        self.assertIn("\noptimizer\n", text)
        self.assertNotIn("\nproducts\n", text)
        names = re.findall(r"^\| (adam[^|]*) \|", text, re.M)
        self.assertEqual(names, ["adam 1000", "adam with average 1000"])
        listed = run("--list", "growth").stdout.splitlines()
        self.assertTrue(len(listed) > 20
                        and all(re.fullmatch(r"growth/\w+: B \d+ T \d+ H \d+ layers \d+ V \d+",
                                             line) for line in listed), listed)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "bench.csv"
            self.assertIn("out (list is on)", run("--list", "--out", out, status=2).stderr)
            for name in ("-", "/dev/stdout"):
                self.assertIn(f"out: {name} is standard output",
                              run("--quick", "--out", name, "--filter", "nothing", status=2).stderr)
            shown = run("--quick", "--cpu-threads", 1, "--filter", "^optimizer/adam ",
                        "--format", "csv", "--out", out, "--repetitions", 3).stdout
            self.assertIn("median, ms", shown)
            lines = [line for line in out.read_text().splitlines() if not line.startswith("#")]
            rows = list(csv.DictReader(lines))
            self.assertEqual([row["name"] for row in rows], names)
            self.assertEqual(rows[0]["repetitions"], "3")
            self.assertLessEqual(float(rows[0]["ms"]), float(rows[0]["median_ms"]))

    def test_products_beside_a_blas_by_name(self):
        rows = json.loads(run("--quick", "--format", "json", "--cpu-threads", 1,
                              "--filter", "products", "--blas", "libopenblas.so.0").stdout)
        self.assertTrue(rows["context"]["BLAS"].startswith("OpenBLAS 0."), rows["context"])
        for row in rows["benchmarks"]:
            self.assertEqual("OpenBLAS, GFLOP/s" in row.get("extras", {}),
                             row["table"] == "products", row["name"])
        self.assertIn("--blas: libmissing.so", run("--quick", "--filter", "products",
                                                   "--blas", "libmissing.so", status=2).stderr)
        # A library that is no BLAS.
        self.assertIn("has no cblas_sgemm", run("--quick", "--filter", "products",
                                                "--blas", "libm.so.6", status=2).stderr)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib")
    def test_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            report.write_text(json.dumps(self.document))
            script = pathlib.Path(__file__).resolve().parents[2] / "scripts/bench/bench_plot.py"
            subprocess.run([sys.executable, script, "--out", folder, report], check=True,
                           capture_output=True)
            for name in ("bench-roofline.png", "bench-step.png"):
                self.assertGreater((pathlib.Path(folder) / name).stat().st_size, 10000, name)

    @unittest.skipUnless((BENCH.parent / "emulated/nmt-bench").exists(),
                         "no programs over the emulator")
    def test_on_the_emulator(self):
        rows = json.loads(subprocess.run(
            [BENCH.parent / "emulated/nmt-bench", "--quick", "--format", "json", "--device", "cuda",
             "--cpu-threads", "1", "--filter", EMULATED], check=True, capture_output=True,
            text=True, timeout=600).stdout)["benchmarks"]
        self.assertEqual({row["table"] for row in rows},
                         set(TABLES) - {"groups", "mixed", "processor", "zeros"})
        self.assertEqual([row for row in rows if "error_occurred" in row], [])

    def test_every_row_of_the_text_stands_under_its_columns(self):
        text = run("--quick", "--cpu-threads", 1, "--filter", "^(processor|step|softmax)/").stdout
        columns, rows = 0, 0
        for line in text.splitlines():
            if line.startswith("| row |"):
                columns = line.count("|")
            elif line.startswith("| "):
                rows += 1
                self.assertEqual(line.count("|"), columns, line)
        self.assertGreater(rows, 20)
        self.assertRegex(text, r"\| KiB per thread \|")

    def test_refusals(self):
        run("--quick", "--cpu-threads", 2, "softmax")
        run("--quick", "--cpu-threads", 2, "softmax", "--precision", "bfloat16")
        self.assertIn("no row of any table matches 'nothing'",
                      run("--quick", "nothing", status=2).stderr)
        self.assertIn("not a regular expression", run("--quick", "--filter", "(", status=2).stderr)
        self.assertIn("json", run("--format", "xml", status=2).stderr)
        self.assertIn("/nonexistent/x: cannot be written",
                      run("--quick", "--out", "/nonexistent/x", status=2).stderr)


class ProcessorTable(unittest.TestCase):
    def test_classes(self):
        # CPUID of well-known products: EPYC 7763, 9654 and 9755; Xeon 8280, 8380, 8480+ and 6980P.
        newest = ["avx512f", "avx512_vnni", "avx512_bf16"]
        tiles = [*newest, "amx_tile"]
        for facts, name in ((("AuthenticAMD", 25, 1, ["avx2"]), "AMD Zen 3"),
                            (("AuthenticAMD", 25, 17, newest), "AMD Zen 4"),
                            (("AuthenticAMD", 26, 2, newest), "AMD Zen 5"),
                            (("GenuineIntel", 6, 85, ["avx512_vnni"]), "Intel Cascade Lake"),
                            (("GenuineIntel", 6, 106, ["avx512_vnni"]), "Intel Ice Lake"),
                            (("GenuineIntel", 6, 143, tiles), "Intel Sapphire Rapids"),
                            (("GenuineIntel", 6, 173, tiles), "Intel Granite Rapids"),
                            (("Other", 1, 2), "Other family 1 model 2")):
            self.assertEqual(processor_table.class_of(*facts), name)
        # A hypervisor that hides features, and one that reports the model of an older
        # processor with AMX.
        emerald = ("GenuineIntel", 6, 207)
        self.assertEqual(processor_table.class_of(*emerald, newest, 260 * 1024),
                         "Intel Emerald Rapids without AMX")
        self.assertEqual(processor_table.class_of(*emerald, ["avx512_vnni"]),
                         "Intel Emerald Rapids without AMX and AVX-512 BF16")
        for model in (143, 207):
            self.assertEqual(processor_table.class_of("GenuineIntel", 6, model, tiles, 480 * 1024),
                             "Intel Granite Rapids")
        # A hypervisor that reports the model of a processor without AMX.
        hidden = ("GenuineIntel", 6, 167)
        self.assertEqual(processor_table.class_of(*hidden, tiles, 480 * 1024),
                         "Intel Granite Rapids")
        for facts in ((["amx_tile"], 320 * 1024), (["avx512f"], 480 * 1024)):
            self.assertEqual(processor_table.class_of(*hidden, *facts),
                             "GenuineIntel family 6 model 167")

    def test_a_section_is_added_or_replaced(self):
        page = "# Head\n\nText.\n"
        one = processor_table.replaced(page, "A", "## A\n\nold\n")
        two = processor_table.replaced(one, "B", "## B\n\nb\n")
        self.assertEqual(two, "# Head\n\nText.\n\n## A\n\nold\n\n## B\n\nb\n")
        self.assertEqual(processor_table.replaced(two, "A", "## A\n\nnew\n"),
                         "# Head\n\nText.\n\n## A\n\nnew\n\n## B\n\nb\n")
        self.assertEqual(processor_table.replaced(two, "B", "## B\n\nc\n"),
                         "# Head\n\nText.\n\n## A\n\nold\n\n## B\n\nc\n")

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("# Head\n")
            subprocess.run([sys.executable, processor_table.__file__, "--quick", "--page", page],
                           check=True, capture_output=True,
                           timeout=300, env={**os.environ, "NMT_BUILD": str(BENCH.parents[1])})
            text = page.read_text()
            self.assertIn(f"\n## {processor_table.this_class()}\n", text)
            rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")
                    and not line.startswith("| row")]
            self.assertEqual(len({len(row) for row in rows}), 1)
            for start in ("| processor: read L1", "| training: ", "| decoding: "):
                self.assertTrue(any(row[0].startswith(start) for row in rows), (start, text))


if __name__ == "__main__":
    unittest.main()
