"""Implementation of gpu_check.sh, which describes the usage."""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Tests for racecheck and initcheck: one case per kind of kernel; memcheck runs all.
SANITIZED = "*recurrence*:*attention*:*softmax*:*top_k*:*optimizer*:*adam*:*layer_norm*:*scatter*:*gemm"


class Check:
    def __init__(self, options):
        self.options = options
        self.build = options.build.resolve()
        self.bin = self.build / "bin" / ("emulated" if options.emulated and (self.build / "bin/emulated").is_dir() else "")
        self.env = dict(os.environ)
        self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(self.build / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="nmt-gpu-check-"))
        self.lines, self.results = [], []

    def say(self, text=""):
        self.lines.append(text)
        self.write()

    def write(self):
        """Writes the report so far, so that an interrupted run leaves a partial report."""
        table = ["| check | result | seconds |", "|---|---|---|", *(f"| {name} | {result} | {seconds:.0f} |" for name, result, seconds in self.results)]
        self.options.report.write_text("\n".join([*self.head, "", *table, "", *self.lines]) + "\n", encoding="utf-8")

    def run(self, command, limit):
        start = time.time()
        try:
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=limit, env=self.env, cwd=self.work)
            status, text = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            status, text = 124, (late.stdout or b"").decode(errors="replace")
        except OSError as error:
            status, text = 127, str(error)
        return status, text, time.time() - start

    def note(self, name, result, seconds, detail=""):
        print(f"{name}: {result} ({seconds:.0f} s)", flush=True)
        self.results.append((name, result, seconds))
        if detail:
            self.say(f"### {name}: {result}\n\n```\n{detail.rstrip()}\n```\n")
        self.write()

    # ---- the parts ----

    def machine(self):
        seen, smi, _ = self.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], 60)
        status, text, _ = self.run([self.bin / "nmt-score", "--device", "cuda", "-m", "/nonexistent", __file__, __file__], 120)
        first = text.splitlines()[0] if text else "the programs do not start"
        emulated = "emulator" in first
        here = " on cuda:" in first
        kind = "the emulator: no GPU has run any of this" if emulated else "none" if not here else smi.strip().splitlines()[0] if seen == 0 and smi.strip() else "unknown"
        _, version, _ = self.run([self.bin / "nmt-train", "--build-info"], 60)
        self.head = [f"# GPU check, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC", "", f"Device: {kind}.", "", f"First log line: `{first}`", "",
                     "```", version.strip(), "```"]
        if not here:
            self.note("a device", f"FAILED: there is no GPU to test: {first.removeprefix('error: --device cuda: ')}", 0, text[-2000:])
            return False
        if emulated and not self.options.emulated:
            self.note("a device", "FAILED: only the emulator is here; --emulated tries the flow with it", 0)
            return False
        return True

    def tests(self, name, program, prefix=(), wanted="*", limit=3600):
        path = self.build / "bin" / program
        if not path.exists():
            return self.note(name, f"FAILED: there is no {program}", 0)
        status, text, seconds = self.run([*prefix, path, f"--gtest_filter={wanted}", "--gtest_brief=1"], limit)
        passed = re.search(r"\[  PASSED  \] (\d+) test", text)
        skipped = re.search(r"\[  SKIPPED \] (\d+) test", text)
        without = re.search(r"no cuDNN to test: (.+)", text)  # no other cause is accepted
        errors = re.findall(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", text)
        bad = sum(int(a or b) for a, b in errors)
        good = status == 0 and passed and (not skipped or without) and bad == 0
        result = f"{passed[1]} tests passed" + (", no error" if prefix else "") + (f", {skipped[1]} skipped: {without[1]}" if skipped else "") if good else f"FAILED (status {status}, {bad} sanitizer errors)"
        self.note(name, result, seconds, "" if good else text[-6000:])

    def sanitizer(self):
        tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
        if self.options.emulated:
            return self.note("compute-sanitizer", "not run: it needs a GPU", 0)
        if not tool:
            return self.note("compute-sanitizer", "not run: it is not installed here", 0)
        for kind in ("memcheck", "racecheck", "initcheck"):
            self.tests(kind, "cuda_tests", [tool, "--tool", kind, "--error-exitcode", "9"], "*" if kind == "memcheck" else SANITIZED, 1800)
        self.tests("memcheck of whole models", "device_tests", [tool, "--tool", "memcheck", "--error-exitcode", "9"], "*gru*", 1800)

    def data(self):
        folder = self.options.data or next((f for f in (self.build / "data/multi30k", pathlib.Path(os.environ.get("NMT_DATA", "/none")) / "multi30k") if f.is_dir()), None)
        if folder and not self.options.emulated:
            folder = folder.resolve()  # programs run in their own directory
            return {"train": [folder / "train.en", folder / "train.de"], "valid": [folder / "val.en", folder / "val.de"],
                    "test": [folder / "test2016.en", folder / "test2016.de"]}, "Multi30k"
        pairs = "60" if self.options.emulated else "20000"
        subprocess.run([sys.executable, HERE.parent / "data/make_toy_corpus.py", "--pairs", pairs, "--valid", "10" if self.options.emulated else "500", "--test", "4" if self.options.emulated else "500",
                        "--seed", "1", self.work], check=True)
        if self.options.emulated:  # short sentences, because the emulator is slow
            for path in self.work.glob("*.??"):
                lines = path.read_text(encoding="utf-8").splitlines()
                path.write_text("".join(" ".join(line.split()[:3]) + "\n" for line in lines), encoding="utf-8")
        return {part: [self.work / f"{part}.en", self.work / f"{part}.de"] for part in ("train", "valid", "test")}, "a toy corpus (no Multi30k here)"

    def train(self, name, device, precision, data, cell="", more=()):
        o = self.options
        cell = cell or ("lrn" if o.emulated else "gru")
        small = ["--dim-emb", "8", "--dim-rnn", "8", "--dim-vocabs", "70", "--mini-batch-words", "40", "--max-length", "60",
                 "--enc-depth", "1", "--dec-depth", "1", "--cpu-threads", "1", "--valid-max-sentences", "1", "--valid-metrics", "cross-entropy"]
        usual = ["--type", "deep", "--dim-emb", "256", "--dim-rnn", "256", "--enc-depth", "2", "--dec-depth", "2", "--dim-vocabs", "8000",
                 "--mini-batch-words", "4096", "--valid-max-sentences", "200", "--dropout-emb", "0.2", "--dropout-rnn", "0.2", "--dropout-readout", "0.2"]
        updates = o.updates or (3 if o.emulated else 300 if o.quick else 1500)
        command = [self.bin / "nmt-train", *data["train"], "--valid-sets", *data["valid"], "--model", self.work / name, "--device", device, "--after", f"{updates}u",
                   "--disp-freq", f"{max(1, updates // 15)}u", "--valid-freq", f"{updates}u", "--save-freq", f"{updates}u", "--early-stopping", "0", "--seed", "1",
                   "--enc-cell", cell, "--dec-cell", cell, *more, *(small if o.emulated else usual)]
        if precision != "float32":
            command += ["--precision", precision]
        status, text, seconds = self.run(command, 7200)
        if status != 0:
            self.note(f"training: {name}", f"FAILED (status {status})", seconds, text[-3000:])
            return None
        history = [json.loads(line) for line in (self.work / name / "train.jsonl").read_text(encoding="utf-8").splitlines()]
        curve = {e["updates"]: e for e in history if e["event"] == "display"}
        last = curve[max(curve)]
        self.note(f"training: {name}", f"{updates} updates, loss {last['loss']:.4f}, {last['target_tokens_per_second']:.0f} target tokens/s", seconds)
        return curve

    def bleu(self, name, device, precision, data):
        out = self.work / f"{name}.out"
        precision = ["--precision", precision] if precision != "float32" else []
        cheap = ["-b", "1", "--max-length-factor", "1", "--max-length-offset", "1"] if self.options.emulated else []
        status, text, seconds = self.run([self.bin / "nmt-translate", "-m", self.work / name, "-d", device, *precision, *cheap, "-i", data["test"][0], "-o", out], 3600)
        if status != 0:
            self.note(f"translating: {name} on {device}", f"FAILED (status {status})", seconds, text[-3000:])
            return None
        speed = re.search(r"([\d.]+) sentences/s", text)
        status, text, _ = self.run([self.build / "bin/nmt-bleu", data["test"][1], "-i", out], 300)
        if status != 0:
            self.note(f"BLEU: {name} on {device}", f"FAILED (status {status})", seconds, text[-3000:])
            return None
        score = json.JSONDecoder().raw_decode(text)[0]["score"]  # warnings may follow
        self.note(f"translating: {name} on {device}", f"BLEU {score}, {speed[1] if speed else '?'} sentences/s", seconds)
        return score

    def layers_by_cudnn(self, data):
        """Compares one model with our recurrent layers and with cuDNN's."""
        without = re.search(r"recurrences: (cudnn cannot be used: .+)", self.run([self.bin / "nmt-score", "--device", "cuda", "--recurrences", "cudnn", "-m", "/nonexistent", __file__, __file__], 120)[1])
        if without:
            return self.note("layers by cuDNN", f"not run: {without[1]}", 0)
        plain = ["--no-layer-normalization", "--attention-query", "first-layer"]
        curves = {who: self.train(f"lstm-{who}", "cuda", "float32", data, "lstm", [*plain, "--recurrences", who]) for who in ("own", "cudnn")}
        if None in curves.values():
            return
        ours, theirs = (curves[who][max(curves[who])] for who in ("own", "cudnn"))
        close = abs(ours["loss"] - theirs["loss"]) <= 0.03 * ours["loss"]
        self.note("loss with cuDNN's layers within 3 % of ours", "yes" if close else f"FAILED: {theirs['loss']:.4f} and {ours['loss']:.4f}", 0)

    def trainings(self):
        data, what = self.data()
        kinds = [("cpu", "cpu", "float32"), ("cuda", "cuda", "float32")]
        if "bfloat16" in self.run([self.bin / "nmt-train", "--help"], 60)[1]:
            kinds.append(("cuda-bfloat16", "cuda", "bfloat16"))
        curves = {name: self.train(name, device, precision, data) for name, device, precision in kinds}
        scores = {name: self.bleu(name, device, precision, data) for name, device, precision in kinds if curves[name]}
        if curves["cpu"] and curves["cuda"]:
            scores["the CPU's model on the GPU"] = self.bleu("cpu", "cuda", "float32", data)
        self.say(f"## Training on {what}\n\nLabel-smoothed loss of the interval before each update.\n")
        there = {name: curve for name, curve in curves.items() if curve}
        self.say("| update | " + " | ".join(there) + " |\n|" + "---|" * (len(there) + 1))
        for update in sorted(set().union(*map(set, there.values()))):
            self.say(f"| {update} | " + " | ".join(f"{curve[update]['loss']:.4f}" if update in curve else "" for curve in there.values()) + " |")
        self.say("\n| model | BLEU |\n|---|---|")
        for name, score in scores.items():
            self.say(f"| {name} | {score} |")
        self.say()
        for name in ("cuda", "cuda-bfloat16"):
            curve, cpu = curves.get(name), curves["cpu"]
            if curve and cpu:
                last = max(set(curve) & set(cpu))
                a, b = curve[last]["loss"], cpu[last]["loss"]
                close = abs(a - b) <= 0.03 * b
                self.note(f"loss of {name} within 3 % of the CPU's", "yes" if close else f"FAILED: {a:.4f} and {b:.4f}", 0)
            if not self.options.emulated and None not in (scores.get(name), scores.get("cpu")):
                close = abs(scores[name] - scores["cpu"]) <= 0.5
                self.note(f"BLEU of {name} within 0.5 of the CPU's", "yes" if close else f"no: {scores[name]} and {scores['cpu']}", 0)
        self.layers_by_cudnn(data)

    def benchmarks(self):
        if self.options.emulated:
            return self.note("nmt-bench", "not run: the emulator's speed says nothing", 0)
        for precision in ("float32", "bfloat16"):
            command = [self.build / "bin/nmt-bench", "--device", "cuda", *(["--quick"] if self.options.quick else []), *(["--precision", precision] if precision != "float32" else [])]
            status, text, seconds = self.run(command, 3600)
            self.note(f"nmt-bench, {precision}", "done" if status == 0 else f"FAILED (status {status})", seconds, text[-60000:])

    def main(self):
        emulated = self.options.emulated
        if self.machine():
            some = emulated and not self.options.all
            quick = "*softmax*:*top_k*" if some else "*"
            self.tests("parity of kernels", "cuda_emulated_tests" if emulated and (self.build / "bin/emulated").is_dir() or not (self.build / "bin/cuda_tests").exists() else "cuda_tests", wanted=quick)
            self.tests("parity of models", "device_emulated_tests" if emulated and (self.build / "bin/device_emulated_tests").exists() else "device_tests", wanted="*Memory*" if some else "*")
            self.sanitizer()
            self.trainings()
            self.benchmarks()
        self.write()
        shutil.rmtree(self.work, ignore_errors=True)
        print(f"{self.options.report}: written")
        return 1 if any("FAILED" in result for _, result, _ in self.results) else 0


def options():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description="Tests and measures a build on a machine with a GPU; writes one report.")
    parser.add_argument("build", type=pathlib.Path, help="build directory with bin/ and lib/")
    parser.add_argument("report", type=pathlib.Path, nargs="?", default=pathlib.Path("gpu_check.md"))
    parser.add_argument("--data", type=pathlib.Path, help="a folder with Multi30k; data/multi30k in the build directory or $NMT_DATA/multi30k when not given")
    parser.add_argument("--quick", action="store_true", help="fewer updates and shorter benchmarks")
    parser.add_argument("--emulated", action="store_true", help="run on the emulator, without a GPU, in minutes")
    parser.add_argument("--all", action="store_true", help="with --emulated: run all tests of kernels and models instead of a selection")
    parser.add_argument("--updates", type=int, help="updates of each training")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(Check(options()).main())
