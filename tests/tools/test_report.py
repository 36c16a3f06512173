#!/usr/bin/env python3
"""Tests of nmt-report and of what nmt-train records for it: kill -9 and resuming, the page's
numbers, hostile text, bad input. Usage: test_report.py BIN_DIR [test names]"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["--dim-emb", "16", "--dim-rnn", "16", "--enc-depth", "1", "--dec-depth", "1",
         "--dim-vocabs", "200", "--mini-batch-words", "200",
         "--cpu-threads", "2", "--disp-freq", "5u", "--valid-freq", "10u", "--save-freq", "10u",
         "--valid-max-sentences", "20", "--max-length", "20",
         "--early-stopping", "0", "--learn-rate", "0.01"]
HOSTILE = '</script><script>document.title="owned"</script> <b>&amp; "x" \' \u2028 <!-- ]]>'


def run(*args, status=0, tool="nmt-report"):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, timeout=300)
    if done.returncode != status:
        raise AssertionError(f"{tool} {args}: status {done.returncode}, not {status}\n"
                             f"{done.stdout}{done.stderr}")
    return done


def page_data(page):
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert len(found) == 1, len(found)
    return json.loads(found[0])


def log(model):
    return [json.loads(line)
            for line in (model / "train.jsonl").read_text(encoding="utf-8").splitlines()]


def chrf(output, reference):
    """chrF of a sentence (Popovic 2015; order 6, beta 2, white space left out), orders that a side
    is too short for left out."""
    a, b = "".join(output.split()), "".join(reference.split())
    precision, recall = [], []
    for n in range(1, 7):
        x, y = (collections.Counter(t[i:i + n] for i in range(len(t) - n + 1)) for t in (a, b))
        if x and y:
            same = sum((x & y).values())
            precision.append(same / sum(x.values()))
            recall.append(same / sum(y.values()))
    if not precision:
        return 0.0
    p, r = sum(precision) / len(precision), sum(recall) / len(recall)
    return 500 * p * r / (4 * p + r) if p + r > 0 else 0.0


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="nmt-report-test-"))
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "300",
                        "--valid", "60", "--test", "10", "--seed", "1", cls.root], check=True)
        for side in ("en", "de"):  # a development sentence that tries to leave the page's script
            with (cls.root / f"valid.{side}").open("a", encoding="utf-8") as file:
                file.write(HOSTILE + "\n")
        cls.model = cls.root / "the model"
        cls.command = [BIN / "nmt-train", cls.root / "train.en", cls.root / "train.de",
                       "--valid-sets", cls.root / "valid.en", cls.root / "valid.de",
                       "--model", cls.model, *SMALL, "--valid-max-sentences", "0"]
        process = subprocess.Popen([*cls.command, "--after", "40u"], stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, text=True)
        for line in process.stderr:  # killed after figures that no checkpoint has
            if "update 15 " in line:
                break
        process.kill()
        process.wait()
        process.stderr.close()
        with (cls.model / "train.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"event":"display","updates":')
        subprocess.run([*cls.command, "--after", "40u"], check=True, stderr=subprocess.DEVNULL)
        cls.page = run(cls.model, "--json", cls.root / "report.json").stdout.decode()
        cls.report = json.loads((cls.root / "report.json").read_text(encoding="utf-8"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def test_resuming_after_a_kill_repeats_nothing(self):
        events = log(self.model)
        self.assertEqual([e["updates"] for e in events if e["event"] == "display"],
                         [5, 10, 15, 20, 25, 30, 35, 40])
        self.assertEqual([e["updates"] for e in events if e["event"] == "validation"],
                         [10, 20, 30, 40])
        self.assertEqual([e["updates"] for e in events if e["event"] == "run"], [0, 10])
        self.assertEqual(events[-1]["event"], "end")

    def test_page_holds_the_numbers_of_the_json(self):
        self.assertEqual(page_data(self.page), self.report)
        displays = [e for e in log(self.model) if e["event"] == "display"]
        for name, column in self.report["displays"].items():
            self.assertEqual(column, [e[name] for e in displays], name)
        for metric in ("bleu", "chrf"):
            self.assertEqual(self.report["validations"]["metrics"][metric],
                             [e[metric] for e in log(self.model) if e["event"] == "validation"])
        self.assertEqual(self.report["progress"]["updates"], 40)
        self.assertAlmostEqual(self.report["development"]["bleu"]["score"],
                               self.report["validations"]["metrics"]["bleu"][-1], places=9)

    def test_guided_alignment_has_a_curve(self):
        self.assertNotIn("alignment", self.report["displays"])
        links, model = self.root / "links", self.root / "guided"
        links.write_text("0-0\n" * len(
            (self.root / "train.en").read_text(encoding="utf-8").splitlines()), encoding="utf-8")
        command = [model if word is self.model else word for word in self.command]
        for more in ([], ["--guided-alignment", links]):  # begun without
            subprocess.run([*command, *more, "--after", "20u" if more else "10u"], check=True,
                           stderr=subprocess.DEVNULL)
        page = run(model).stdout.decode()
        column = page_data(page)["displays"]["alignment"]
        self.assertEqual(column,
                         [e.get("alignment") for e in log(model) if e["event"] == "display"])
        self.assertEqual([value is None for value in column], [True, True, False, False])
        self.assertIn("d.alignment ? curve(", page)

    def test_command_and_machine(self):
        first = self.report["runs"][0]
        words = subprocess.run(["bash", "-c", f"printf '%s\\n' {first['command']}"],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(words, [*map(str, self.command), "--after", "40u"])
        self.assertEqual(first["folder"], str(pathlib.Path.cwd()))
        self.assertEqual(first["machine"]["threads"], 2)
        self.assertIn("dim-rnn: 16", first["settings"])

    def test_lengths(self):
        for side, file in (("source", "train.en"), ("target", "train.de")):
            out = self.root / "pieces"
            run("inspect", self.model / "vocab.spm", "--encode", "-i", self.root / file, "-o", out,
                tool="nmt-vocab")
            counts = collections.Counter(len(line.split(" ")) if line else 0
                                         for line in out.read_text(encoding="utf-8").splitlines())
            self.assertEqual(self.report["runs"][0]["lengths"][side],
                             sorted(map(list, counts.items())))

    def test_worst_sentences(self):
        development = json.loads((self.model / "development.json").read_text(encoding="utf-8"))
        lists = development["sources"], development["references"], development["outputs"]
        self.assertEqual(development["updates"], 40)
        self.assertEqual(lists[0],
                         (self.root / "valid.en").read_text(encoding="utf-8").split("\n")[:-1])
        scores = [chrf(o, r) for _, r, o in zip(*lists)]
        worst = self.report["development"]["worst"]
        self.assertEqual(len(worst), 20)
        for entry, score in zip(worst, sorted(scores)):
            self.assertAlmostEqual(entry["chrf"], score, places=6)
            self.assertAlmostEqual(entry["chrf"], scores[entry["line"] - 1], places=6)
            self.assertEqual([entry["source"], entry["reference"], entry["output"]],
                             [part[entry["line"] - 1] for part in lists])

    def test_hostile_text_stays_text(self):
        page = run(self.model, "--worst", "1000").stdout.decode()
        worst = page_data(page)["development"]["worst"]
        self.assertIn(HOSTILE, [s["source"] for s in worst])
        self.assertNotIn("owned", re.sub(r'<script type="application/json".*?</script>', "", page,
                                         flags=re.S))
        self.assertEqual(page.count("<script"), 2)

    def test_page_needs_nothing_else(self):
        self.assertEqual(re.findall(r'(?:src|href)\s*=\s*"(?!data:)[^"]*"|@import|url\(',
                                    self.page), [])

    def test_pipes_and_links_stay_what_they_are(self):
        pipe, link, target = (self.root / name for name in ("pipe", "link", "target"))
        os.mkfifo(pipe)
        link.symlink_to("target")
        with subprocess.Popen(["timeout", "60", "cat", pipe], stdout=subprocess.PIPE) as reader:
            run(self.model, "-o", pipe, "--json", link)
            self.assertEqual(reader.stdout.read().decode(), self.page)
        self.assertTrue(pipe.is_fifo() and link.is_symlink())
        self.assertEqual(json.loads(target.read_text(encoding="utf-8")), self.report)
        self.assertEqual(run(self.model, "-o", "-").stdout.decode(), self.page)
        self.assertFalse(pathlib.Path("-").exists())

    def test_bad_input_is_one_line(self):
        bare = self.root / "bare"
        shutil.copytree(self.model, bare, symlinks=True)
        (bare / "train.jsonl").unlink()
        odd = self.root / "odd"
        shutil.copytree(self.model, odd, symlinks=True)
        (odd / "development.json").write_text('{"updates": 3, "sources": ["a"], "references": [], '
                                              '"outputs": ["b"]}')
        vast = self.root / "vast"
        shutil.copytree(self.model, vast, symlinks=True)
        (vast / "development.json").write_text('{"updates": 1e30, "sources": ["a"], '
                                               '"references": ["a"], "outputs": ["b"]}')
        noise = self.root / "noise"
        shutil.copytree(self.model, noise, symlinks=True)
        (noise / "train.jsonl").write_bytes(b"\xff\xfe\n[]\n{\n")
        for status, args, word in (
                (2, [], "nmt-report DIR"), (2, [self.root / "none"], "none"),
                (3, [bare], "train.jsonl"), (3, [odd], "development.json"),
                (3, [vast], "development.json"), (3, [noise], "train.jsonl"),
                (2, [self.model, "--worst", "many"], "many"),
                (2, [self.model, "--json", "-"], "both standard output"),
                (2, [self.model, "--json", "/dev/stdout"], "both standard output"),
                (2, [self.model, "-o", self.root], str(self.root)),
                (2, [self.model, "-o", self.root / "none/page.html"], "none/page.html"),
                (2, [self.model, "--json", self.root / "none/x"], "none/x")):
            with self.subTest(args=[str(a) for a in args]):
                done = run(*args, status=status)
                self.assertEqual(done.stdout, b"")
                errors = [line for line in done.stderr.decode().splitlines()
                          if line.startswith("error: ")]
                self.assertEqual(len(errors), 1, done.stderr)
                self.assertIn(word, errors[0])

    def test_outputs_replace_nothing_of_the_model(self):
        copy = self.root / "kept"
        shutil.copytree(self.model, copy, symlinks=True)
        for name in ("train.jsonl", "config.json", "vocab.spm", "latest/model.safetensors",
                     "checkpoints/x"):
            for option in ("-o", "--json"):
                done = run(copy, option, copy / name,
                           *([] if option == "-o" else ["-o", self.root / "kept.html"]), status=2)
                self.assertIn(b"is a file of the model", done.stderr)
        self.assertEqual((copy / "train.jsonl").read_bytes(),
                         (self.model / "train.jsonl").read_bytes())
        page = self.root / "both.html"
        self.assertIn(b"output and json: both are",
                      run(copy, "-o", page, "--json", page.parent / "." / page.name,
                          status=2).stderr)
        self.assertFalse(page.exists())
        here = os.getcwd()
        os.chdir(copy)
        try:
            self.assertIn(b"both are",
                          run(copy, "-o", "new.html", "--json", "./new.html", status=2).stderr)
            self.assertIn(b"is a file of the model",
                          run(".", "-o", "shortlist.bin", status=2).stderr)
        finally:
            os.chdir(here)
        for _ in range(2):
            run(copy, "-o", copy / "report.html", "--json", copy / "report.json")

    def test_damaged_lines_are_left_out(self):
        damaged = self.root / "damaged"
        shutil.copytree(self.model, damaged, symlinks=True)
        lines = (damaged / "train.jsonl").read_bytes().split(b"\n")
        (damaged / "train.jsonl").write_bytes(b"\n".join([*lines[:3], b'\xff{"event":',
                                                          *lines[3:-1], b'{"event":"disp']))
        done = run(damaged)
        self.assertIn(b"the first is line 4", done.stderr)
        self.assertEqual(page_data(done.stdout.decode())["displays"], self.report["displays"])
        deep = b'{"event":"run","updates":20,"x":' + b"[" * 100000 + b"]" * 100000 + b"}"
        (damaged / "train.jsonl").write_bytes(b"\n".join([*lines[:3], deep, *lines[3:]]))
        done = run(damaged)
        self.assertIn(b"the first is line 4", done.stderr)
        self.assertEqual(page_data(done.stdout.decode())["displays"], self.report["displays"])


    def test_many_resumes_take_linear_time(self):
        long = self.root / "long"
        shutil.copytree(self.model, long, symlinks=True)
        with (long / "train.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"event":"resume","updates":100000}\n' * 40000)
        before = os.times().children_user
        self.assertEqual(page_data(run(long).stdout.decode())["displays"],
                         self.report["displays"])
        self.assertLess(os.times().children_user - before, 10)  # 40 s in quadratic time


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
