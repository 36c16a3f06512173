"""Part 4: short trainings of one model on CPU and GPU, each with a translation of the test set. A
training, its translation and its BLEU are one step."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import runner

SCRIPTS = pathlib.Path(__file__).resolve().parents[2]
EMULATED_PAIRS = {"pairs": 60, "valid": 10, "test": 4}
TOY_PAIRS = {"pairs": 20000, "valid": 500, "test": 500}
# In the order of the report, also where one was repeated.
TRAININGS = ("cpu", "cuda", "cuda, bfloat16", "cuda, tf32", "cuda, without graphs", "cuda, lstm",
             "cuda, lstm by cuDNN")


def make_toy(folder, sizes, is_short):
    """Writes a toy corpus; is_short: sentences of at most three words, because the emulator
    is slow."""
    subprocess.run([sys.executable, SCRIPTS / "data/make_toy_corpus.py",
                    *(str(x) for key, n in sizes.items() for x in (f"--{key}", n)), "--seed", "1",
                    folder], check=True)
    if is_short:
        for path in folder.glob("*.??"):
            lines = path.read_text(encoding="utf-8").splitlines()
            path.write_text("".join(" ".join(line.split()[:3]) + "\n" for line in lines),
                            encoding="utf-8")


def find_data(check):
    """Files of each part of the data, and what they are."""
    o = check.options
    places = [check.build / "data/multi30k",
              pathlib.Path(os.environ.get("NMT_DATA", "/none")) / "multi30k"]
    folder = o.data.resolve() if o.data else next((f for f in places if f.is_dir()), None)
    if folder and not o.emulated:
        return {"train": [folder / "train.en", folder / "train.de"],
                "valid": [folder / "val.en", folder / "val.de"],
                "test": [folder / "test2016.en", folder / "test2016.de"]}, "Multi30k"
    work = check.runner.work
    make_toy(work, EMULATED_PAIRS if o.emulated else TOY_PAIRS, o.emulated)
    return {part: [work / f"{part}.en", work / f"{part}.de"]
            for part in ("train", "valid", "test")}, "a toy corpus"


def command_of(check, model, device, data, updates, unit, more):
    small = ["--dim-emb", "8", "--dim-rnn", "8", "--dim-vocabs", "70", "--mini-batch-words", "40",
             "--max-length", "60", "--enc-depth", "1", "--dec-depth", "1", "--cpu-threads", "1",
             "--valid-max-sentences", "1", "--valid-metrics", "cross-entropy"]
    usual = ["--type", "deep", "--dim-emb", "256", "--dim-rnn", "256", "--enc-depth", "2",
             "--dec-depth", "2", "--dim-vocabs", "8000",
             "--mini-batch-words", "4096", "--valid-max-sentences", "200", "--dropout-emb", "0.2",
             "--dropout-rnn", "0.2", "--dropout-readout", "0.2"]
    return [check.program("nmt-train"), *data["train"], "--valid-sets", *data["valid"],
            "--model", model, "--device", device, "--after", f"{updates}u",
            "--disp-freq", f"{max(1, updates // 15)}u", "--valid-freq", f"{updates}u",
            "--save-freq", f"{updates}u", "--early-stopping", "0", "--seed", "1", "--unit", unit,
            *([] if "--precision" in more else ["--precision", "float32"]),
            *(small if check.options.emulated else usual), *more]


def memory_of(text, model):
    """MB of tensors at peak by the last log line of nmt-translate on a GPU, and of the model's
    file; {} on the CPU."""
    found = re.search(r"GPU memory: (\d+) MB of tensors at peak", text)
    files = sorted(model.glob("*/model.safetensors"))
    return {"memory": {"peak_mb": int(found[1]), "model_mb": round(1e-6 * files[0].stat().st_size,
                                                                   2)}} if found and files else {}


def graphs_of(text):
    """What the log says of CUDA graphs, or ""."""
    found = re.search(r"(\d+ of \d+) repeated work items ran as CUDA graphs", text)
    return found[1] if found else ""


def train(check, name, device, data, what, more=(), translate=(), unit=""):
    """One step. `translate`: options of nmt-translate; `unit`: GRU where none is given."""
    state, run = check.state, check.runner.run
    if state.is_done(name):
        return
    o = check.options
    updates = o.updates or (3 if o.emulated else 300 if o.quick else 1500)
    model = check.runner.work / re.sub(r"\W+", "-", name)
    shutil.rmtree(model, ignore_errors=True)
    early, limit = check.runner.begins_early(), 3600
    try:
        done = run(command_of(check, model, device, data, updates,
                              unit or ("lrn" if o.emulated else "gru"), more), limit)
        if done.status != 0:
            return state.finish(name, f"FAILED (nmt-train: status {done.status})", False,
                                done.seconds, done.text)
        history = [json.loads(line)
                   for line in (model / "train.jsonl").read_text(encoding="utf-8").splitlines()]
        curve = {e["updates"]: round(e["loss"], 5) for e in history if e["event"] == "display"}
        speeds = sorted(e["target_tokens_per_second"] for e in history if e["event"] == "display")
        speed = speeds[len(speeds) // 2]
        out = check.runner.work / "hypotheses"
        cheap = ["-b", "1", "--max-length-factor", "1",
                 "--max-length-offset", "1"] if o.emulated else []
        hypotheses = run([check.program("nmt-translate"), "-m", model, "-d", device, *translate,
                          *cheap, "-i", data["test"][0], "-o", out], 900)
        scored = (hypotheses.status == 0
                  and run([check.program("nmt-bleu"), data["test"][1], "-i", out], 120))
    except runner.OutOfTime:
        if early:
            state.finish(name, f"FAILED: takes more than the {check.runner.limit:.0f} s of this "
                               "part; --quick trains less", False, 0)
        raise
    if not scored or scored.status != 0:
        return state.finish(name, "FAILED (nmt-translate or nmt-bleu)", False, done.seconds,
                            hypotheses.text + (scored.text if scored else ""))
    bleu = json.JSONDecoder().raw_decode(scored.text)[0]["score"]  # warnings may follow
    sentences = re.findall(r"([\d.]+) sentences/s", hypotheses.text)
    values = {"curve": curve, "target_tokens_per_second": speed, "bleu": bleu, "data": what,
              "updates": updates, "graphs": graphs_of(done.text),
              "sentences_per_second": float(sentences[-1]) if sentences else None,
              **memory_of(hypotheses.text, model)}
    state.finish(name, f"{updates} updates, loss {curve[max(curve)]:.4f}, {speed:.0f} target "
                       f"tokens/s, BLEU {bleu}", True, done.seconds, **values)
    shutil.rmtree(model, ignore_errors=True)


def compare(check, name, first, second, tolerance=0.03):
    """A step: the last losses of two trainings are close."""
    state = check.state
    curves = [state.data["steps"].get(step, {}).get("curve") for step in (first, second)]
    if state.is_done(name) or None in curves:
        return
    a, b = (curve[max(curve, key=int)] for curve in curves)
    close = abs(a - b) <= tolerance * b
    state.finish(name, "yes" if close else f"FAILED: {a:.4f} and {b:.4f}", close, 0)


def part(check):
    state = check.state
    data, what = find_data(check)
    train(check, "training: cpu", "cpu", data, what)
    if check.options.without_gpu:
        return
    train(check, "training: cuda", "cuda", data, what)
    train(check, "training: cuda, bfloat16", "cuda", data, what, ["--precision", "bfloat16"],
          ["--precision", "bfloat16"])
    train(check, "training: cuda, tf32", "cuda", data, what, ["--precision", "tf32"],
          ["--precision", "tf32"])
    train(check, "training: cuda, without graphs", "cuda", data, what, ["--cuda-graphs", "off"],
          ["--cuda-graphs", "off"])
    plain = ["--no-layer-normalization", "--attention-query", "first-layer"]
    train(check, "training: cuda, lstm", "cuda", data, what, plain, unit="lstm")
    if not state.is_done("training: cuda, lstm by cuDNN"):
        probe = check.runner.run([check.program("nmt-score"), "--device", "cuda", "--recurrences",
                                  "cudnn", "-m", "/nonexistent", __file__, __file__], 120)
        without = re.search(r"recurrences: (cudnn cannot be used: .+)", probe.text)
        if without:
            state.finish("training: cuda, lstm by cuDNN", f"not run: {without[1]}", True,
                         probe.seconds)
        else:
            train(check, "training: cuda, lstm by cuDNN", "cuda", data, what,
                  [*plain, "--recurrences", "cudnn"], unit="lstm")
    for name in ("cuda", "cuda, bfloat16", "cuda, tf32"):
        compare(check, f"loss of {name} within 3 % of the CPU's", f"training: {name}",
                "training: cpu")
    compare(check, "loss without graphs equal to the loss with graphs",
            "training: cuda, without graphs", "training: cuda", 0)
    compare(check, "loss with cuDNN's layers within 3 % of ours", "training: cuda, lstm by cuDNN",
            "training: cuda, lstm")
