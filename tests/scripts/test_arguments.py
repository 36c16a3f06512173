#!/usr/bin/env python3
"""Wrong arguments and files end a script of scripts/ with one line that names them, and leave
nothing behind. Programs are stand-ins: no script gets as far as calling one. Usage:
test_arguments.py [BIN_DIR]"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
PROGRAMS = ["nmt-bench", "nmt-bleu", "nmt-convert", "nmt-info", "nmt-score", "nmt-serve", "nmt-tag",
            "nmt-train", "nmt-translate", "nmt-vocab"]
USAGE, DATA = 2, 3
SETS = "--train-sets a.en a.de --test-sets a.en a.de"
UNITS = "bench/units/compare_units.py gru --work work"

# Script and arguments, status, a part of the message.
CASES = (
    [
     # compare_units.py and its figures
     (f"{UNITS} --train-sets a.en a.de --test-sets a.en b.de", DATA,
      "a.en has 3 lines, but b.de has 2"),
     (f"{UNITS} --train-sets a.en b.de --test-sets a.en a.de", DATA,
      "a.en has 3 lines, but b.de has 2"),
     (f"{UNITS} --train-sets a.en a.de --test-sets empty empty", DATA, "empty: has no text"),
     (f"{UNITS} --train-sets a.en none --test-sets a.en a.de", USAGE,
      "--train-sets: none: No such file"),
     (f"{UNITS} --train-sets a.en folder --test-sets a.en a.de", USAGE,
      "--train-sets: folder: is a folder"),
     (f"bench/units/compare_units.py gru --work a.en {SETS}", USAGE, "--work: a.en: is no folder"),
     (f"bench/units/compare_units.py gru --work a.en/below {SETS}", USAGE,
      "--work: a.en/below: a.en is no folder"),
     (f"{UNITS} {SETS} --baseline lrn", USAGE, "--baseline: 'lrn' is none of the units: gru"),
     (f"{UNITS} {SETS} --config none.yaml", USAGE, "--config: none.yaml: No such file"),
     (f"{UNITS} {SETS} --config folder", USAGE, "--config: folder: is a folder"),
     (f"bench/units/compare_units.py none.yaml --work work {SETS}", USAGE,
      "units: none.yaml: No such file"),
     (f"{UNITS} {SETS} --vocabs none", USAGE, "--vocabs: none: No such file"),
     (f"{UNITS} {SETS} --seeds 1 2 1", USAGE, "a seed is given twice"),
     (f"{UNITS} {SETS} --jobs 0", USAGE, "--jobs: '0', expected an integer of at least 1"),
     (f"{UNITS} {SETS} --minutes nan", USAGE, "--minutes: 'nan', expected a number above 0"),
     ("bench/units/plot_units.py none gru", USAGE, "folder: none: No such file"),
     ("bench/units/plot_units.py tables gru", DATA, "table.csv: has no column unit"),
     # Numbers, files and folders of scripts/bench
     ("bench/bench_plot.py none.json", USAGE, "none.json: No such file"),
     ("bench/bench_plot.py a.en", DATA,
      "a.en: is no report of nmt-bench --format json: Expecting value"),
     ("bench/bench_plot.py other.json", DATA,
      "other.json: is no report of nmt-bench --format json: it has no benchmarks"),
     ("bench/bench_plot.py other.json --out none", USAGE, "--out: none: No such file"),
     ("bench/pytorch/compare_decoding.py --data none", USAGE,
      "--data: none/test2016.en: No such file"),
     ("bench/pytorch/compare_decoding.py --data data --shapes 4x", USAGE,
      "--shapes: '4x', expected a list such as 4x64,1x1"),
     ("bench/pytorch/compare_decoding.py --data data --shapes 0x1", USAGE, "--shapes: '0x1'"),
     ("bench/pytorch/compare_decoding.py --data data --lines 0", USAGE, "--lines: '0'"),
     ("bench/pytorch/compare_decoding.py --data data --model none", USAGE,
      "--model: none: No such file"),
     ("bench/pytorch/compare_decoding.py --data data --model folder", USAGE,
      "folder/config.json: No such file"),
     ("bench/pytorch/compare_decoding.py --data data --model model", DATA,
      "model/config.json: is no configuration of a model"),
     ("bench/pytorch/compare_growth.py --filter (", USAGE,
      "--filter: '(' is no regular expression"),
     ("bench/pytorch/compare_growth.py --rounds 0", USAGE, "--rounds: '0'"),
     ("bench/pytorch/compare_layers.py --out none/times", USAGE,
      "--out: none/times: none is no folder"),
     ("bench/pytorch/compare_layers.py --min-time -1", USAGE,
      "--min-time: '-1', expected a number above 0"),
     ("bench/pytorch/compare_pytorch.py --data none", USAGE, "--data: none/train.en: No such file"),
     ("bench/pytorch/compare_pytorch.py --data unequal", DATA,
      "unequal/train.en has 3 lines, but unequal/train.de has 2"),
     ("bench/pytorch/compare_pytorch.py --data binary", DATA, "binary/train.en:2: invalid UTF-8"),
     ("bench/pytorch/compare_pytorch.py --data data --updates 0", USAGE,
      "--updates: '0', expected an integer of at least 1"),
     ("bench/pytorch/compare_pytorch.py --data data --threads many", USAGE, "--threads: 'many'"),
     ("bench/pytorch/compare_pytorch.py", USAGE, "no data: give --data FOLDER or set NMT_DATA"),
     ("bench/compare_workers.py model none", USAGE, "text: none: No such file"),
     ("bench/compare_workers.py model a.en --rounds 0", USAGE, "--rounds: '0'"),
     ("bench/units/draw_gates.py surface none/figure.svg", USAGE,
      "svg: none/figure.svg: none is no folder"),
     ("bench/units/draw_gates.py memory figure.svg damaged.json", 1,
      "damaged.json: damaged, or of another version"),
     ("bench/gpu_check.sh none", USAGE, "build: none: No such file"),
     ("bench/gpu_check.sh folder --updates 0", USAGE, "--updates: '0'"),
     ("bench/gpu_check.sh folder --tools none", USAGE, "--tools: none: No such file"),
     ("bench/gpu_check.sh folder --previous none", USAGE, "--previous: none: No such file"),
     ("bench/gpu_check.sh folder --out a.en", USAGE, "--out: a.en: is no folder"),
     ("bench/load_server.py build/bin model a.en", USAGE,
      "model: 'model', expected EN-DE=DIRECTORY"),
     ("bench/load_server.py build/bin en-de=none a.en", USAGE, "model: none: No such file"),
     ("bench/load_server.py build/bin en-de=model empty", DATA, "empty: has no text"),
     ("bench/load_server.py folder en-de=model a.en", USAGE, "folder/nmt-serve: is missing"),
     ("bench/load_server.py build/bin en-de=model a.en --clients 0", USAGE, "--clients: '0'"),
     ("bench/make_portable.sh build portable none", USAGE, "none/train.en: cannot be read"),
     ("bench/make_portable.sh build a.en", USAGE, "a.en: is no folder"),
     ("bench/measure_scale.py --pairs 10,few", USAGE, "--pairs: 'few', expected an integer"),
     ("bench/measure_scale.py --work a.en", USAGE, "--work: a.en: is no folder"),
     ("bench/units/memory_length.py gru --work work --distance 1", USAGE,
      "--distance: '1', expected an integer of at least 2"),
     ("bench/units/memory_length.py gru gru --work work", USAGE, "gru gru: a unit is given twice"),
     ("bench/processor_table.py --page none.md", USAGE, "--page: none.md: No such file"),
     ("bench/pytorch/ptb_pytorch.py --data none", USAGE, "--data: none/train.txt: No such file"),
     ("bench/pytorch/ptb_pytorch.py --data empty-ptb", DATA, "empty-ptb/valid.txt: has no text"),
     ("bench/pytorch/ptb_pytorch.py --data ptb --streams 50", DATA,
      "ptb/train.txt: 6 tokens are too few for 50 --streams"),
     ("bench/pytorch/ptb_pytorch.py --data ptb --dropout 1.5", USAGE,
      "--dropout: '1.5', expected a number of at least 0 and at most 1"),
     ("bench/pytorch/ptb_pytorch.py --data ptb --layers 0", USAGE, "--layers: '0'"),
     ("bench/python_speed.py build none a.en", USAGE, "model: none: No such file"),
     ("bench/simulate_graphs.py --optimizer-delay 0", USAGE, "--optimizer-delay: '0'"),
     # Folders of scripts/bench
     ("bench/quality/compare_authors.py --work a.en", USAGE, "--work: a.en: is no folder"),
     ("bench/quality/compare_taggers.py none a.en --work work", USAGE, "train: none: No such file"),
     ("bench/quality/compare_taggers.py a.en a.en --work work --programs folder", USAGE,
      "folder/nmt-train: is missing"),
     ("bench/quality/language_models.py a.en a.en --work work --programs build/bin --seeds 1 1",
      USAGE, "--seeds: 1 1: one is given twice"),
     ("bench/quality/language_model_uses.py fusion --data data --work work", USAGE,
      "--data: data/multi30k/train.en: No such file"),
     ("bench/quality/noise.py none --data data", USAGE, "MODEL: none: No such file"),
     ("bench/quality/noise.py model --data data --prefix none", USAGE,
      "--data: data/none.en: No such file"),
     ("bench/quality/noise.py model --data unequal --prefix train", DATA,
      "unequal/train.en has 3 lines"),
     ("bench/rivals/compare_int8_products.py --rows 0", USAGE, "--rows: '0'"),
     ("bench/rivals/compare_marian.py none model a.en", USAGE, "marian: none: No such file"),
     ("bench/rivals/compare_marian.py folder model a.en", USAGE,
      "model: model/vocab.spm: No such file"),
     ("bench/students/compare_students.py model a.en --batch 0", USAGE, "--batch: '0'"),
     ("bench/students/compare_students.py none a.en", USAGE, "none/config.json: No such file"),
     ("bench/students/compare_students.py model none", USAGE, "none: No such file"),
     ("bench/students/compare_students.py model empty", DATA, "empty: has no text"),
     ("bench/students/compare_students.py model a.en", DATA,
      "model/config.json: is no configuration of a model"),
     ("bench/rivals/compare_transformer.py --data data --work a.en", USAGE,
      "--work: a.en: is no folder"),
     ("bench/rivals/compare_transformer.py --data data --work work --width 30", USAGE,
      "--width: 30"),
     ("bench/rivals/compare_transformer.py --data folder --work work", USAGE,
      "--data: folder/train.en: No such file"),
     ("bench/students/make_student.py data work", USAGE, "data/multi30k/train.en: No such file"),
     # scripts/data
     ("data/make_toy_corpus.py a.en", USAGE, "a.en: File exists"),
     ("data/make_toy_corpus.py a.en/below", USAGE, "a.en/below: Not a directory"),
     ("data/make_toy_corpus.py taken --pairs 5 --valid 1 --test 1", USAGE,
      "taken/test.de: is no regular file"),
     ("data/make_shortlist.py none a.en a.de -o list --bin build/bin", USAGE,
      "none: is no model directory"),
     ("data/make_shortlist.py model none a.de -o list --bin build/bin", USAGE, "none: is no file"),
     ("data/make_shortlist.py model a.en a.de -o list --bin folder", USAGE,
      "folder/nmt-vocab: is missing"),
     ("data/make_shortlist.py model a.en a.de -o folder --bin build/bin", USAGE,
      "folder: is no regular file"),
     ("data/make_shortlist.py model a.en a.de -o list --bin build/bin --max-length 0", USAGE,
      "--max-length: 0, expected at least 1"),
     ("data/get_data.sh a.en", 1, "a.en: cannot create the directory"),
     ("data/align_descriptions.py folder", USAGE, "required: FOLDER"),
     ("data/clean_corpus.py a.en a.de none/x none/y", USAGE, "none is no directory"),
     ("data/clean_corpus.py a.en a.de x y --max-words 0", USAGE,
      "--max-words: 0, expected at least 1"),
     ("data/clean_corpus.py a.en a.de x y --max-ratio nan", USAGE,
      "--max-ratio: nan, expected at least 1"),
     ("data/download_multi30k.py none", 1, "none: is no directory"),
     ("data/linearize_trees.py write trees words none/parses", 1, "none/parses.part: No such file"),
     ("data/package_texts.py a.en --lists folder", USAGE, "a.en: is no directory"),
     # scripts/dev
     ("dev/compare_builds.py none build/bin", USAGE, "old: none: No such file"),
     ("dev/compare_builds.py folder build/bin", USAGE, "folder/nmt-train: is missing"),
     ("dev/count_places.py --only unit,none", USAGE, "--only: 'none' is none of unit, "),
     ("dev/count_places.py --scratch data", USAGE, "--scratch: data is not empty"),
     ("dev/kernel_registers.py none", USAGE, "build: none: No such file"),
     ("dev/kernel_resources.py folder --jobs 0", USAGE, "--jobs: '0'"),
     ("dev/make_man_page.sh", USAGE, "usage: make_man_page.sh PROGRAM PAGE"),
     ("dev/make_option_reference.py none", USAGE, "BIN_DIR: none: No such file"),
     ("dev/make_option_reference.py folder --check", USAGE, "folder/nmt-average: is missing"),
     ("dev/plant_faults.py --build a.en", USAGE, "--build: a.en: is no folder"),
     # scripts
     ("release.sh a b", USAGE, "takes at most one folder, got 'b'"),
 ])


class Arguments(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="nmt-arguments-test-")
        self.addCleanup(temporary.cleanup)
        self.home = pathlib.Path(temporary.name)
        for name, text in {
                "a.en": "a\nb\nc\n", "a.de": "x\ny\nz\n", "b.de": "x\ny\n", "empty": "",
                "folder/.keep": "",
                "data/train.en": "a\n", "data/train.de": "b\n", "data/val.en": "a\n",
                "data/val.de": "b\n", "data/test2016.en": "a\n", "data/test2016.de": "b\n",
                "unequal/train.en": "a\nb\nc\n", "unequal/train.de": "a\nb\n",
                "binary/train.de": "a\nb\n", "ptb/train.txt": "a b\nc d\n", "ptb/valid.txt": "a\n",
                "empty-ptb/train.txt": "a\n", "empty-ptb/valid.txt": "\n",
                "model/config.json": "[]\n", "other.json": '{"context": {}}\n',
                "damaged.json": json.dumps({"format": "nmt-explain"}),
                "tables/table.csv": "", "tables/curves.json": "{}", "taken/test.de/x": "",
                "trees": "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n",
            }.items():
            self.write(name, text.encode())
        self.write("binary/train.en", b"a\n\xe4\n")
        for name in PROGRAMS:
            (self.write(f"build/bin/{name}", b"#!/bin/sh\nexit 9\n")).chmod(0o755)

    def write(self, name, content):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def run_it(self, command, **more):
        script, *arguments = command.split(" ")
        environment = {name: value for name, value in os.environ.items() if name != "NMT_DATA"}
        # As in .venv: what is missing is not installed.
        environment |= {"NMT_BUILD": str(self.home / "build"), "NMT_IN_VENV": "1",
                        "PYTHONDONTWRITEBYTECODE": "1", **more}
        interpreter = "bash" if script.endswith(".sh") else sys.executable
        return subprocess.run([interpreter, SCRIPTS / script, *arguments], cwd=self.home,
                              env=environment, capture_output=True, text=True, timeout=60)

    def files(self):
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))

    def test_a_relative_build_is_resolved(self):
        for command, program in ((f"{UNITS} {SETS}", "nmt-train"),
                                 ("bench/pytorch/compare_growth.py", "nmt-bench"),
                                 ("bench/compare_workers.py model a.en", "nmt-translate"),
                                 ("bench/measure_scale.py", "nmt-train"),
                                 ("bench/units/memory_length.py gru --work work", "nmt-train"),
                                 ("bench/processor_table.py", "nmt-bench"),
                                 ("bench/quality/noise.py model --data data", "nmt-translate")):
            with self.subTest(command):
                done = self.run_it(command, NMT_BUILD="folder")
                self.assertEqual(done.returncode, USAGE, done.stderr)
                self.assertIn(f"{self.home.resolve()}/folder/bin/{program}: is missing",
                              done.stderr)

    def test_one_line_names_what_is_wrong(self):
        before = self.files()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(self.run_it, [command for command, _, _ in CASES]))
        for (command, status, message), done in zip(CASES, runs):
            with self.subTest(command):
                said = [line for line in done.stderr.splitlines()
                        if not line.startswith(("usage: ", " ")) or message.startswith("usage: ")]
                self.assertEqual((done.returncode, len(said), done.stdout), (status, 1, ""),
                                 done.stderr)
                self.assertIn(message, said[0])
        self.assertEqual(self.files(), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
