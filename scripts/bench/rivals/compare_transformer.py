#!/usr/bin/env python3
"""Trains a small Transformer in PyTorch and a model of this project for the same minutes on the
same text, translates the test text with CTranslate2 and nmt-translate, and prints a table with BLEU
and sentences per second.

The Transformer: 4+4 layers of width 128, feed-forward 256, 4 heads, pre-norm, dropout 0.3, label
smoothing 0.1, one embedding matrix (2.4 million weights with 8,000 joint pieces); Adam (0.9, 0.98),
inverse square root schedule, average of the weights as of Marian's --exponential-smoothing. First
each pair of --learn-rates and --batches trains for --tune-minutes; the one with the lowest
cross-entropy on the development text trains for --minutes (again, unless both are equal).
CTranslate2 translates with beam 4 in float32 and int8.

This project: nmt-train with each --config for the same minutes; nmt-translate in float32
and, converted by nmt-convert, in int8. Both sides use --threads threads in all. Minutes are
wall time, so nothing else should run; those of the Transformer with one thread are CPU time.
Lines of progress go to stderr, the table to stdout.
Trainings that are finished in --work with the same settings and text are not repeated; all
translations are, so that speeds are of one run. --picture draws BLEU against sentences per
second in batches, which needs matplotlib.

    scripts/bench/rivals/compare_transformer.py --data multi30k --minutes 15 --work rival

Programs are taken from $NMT_BUILD, else build/. If PyTorch, sentencepiece or CTranslate2 is
missing, the script installs them in .venv."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.system import ROOT, ensure_packages, programs  # noqa: E402
from transformer_training import (check_settings, digests, lines,  # noqa: E402
                                  train_vocabulary, trained_transformer)


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=arguments.folder,
                        help="folder with train, val and test2016 in .en and .de")
    parser.add_argument("--work", required=True, type=arguments.new_folder,
                        help="folder of models and translations")
    parser.add_argument("--minutes", type=arguments.number(above=0), default=15,
                        help="minutes of each training (%(default)s)")
    parser.add_argument("--tune-minutes", type=arguments.number(above=0), default=2,
                        help="minutes of each pair that is tried (%(default)s)")
    parser.add_argument("--learn-rates", type=arguments.number(above=0), nargs="+",
                        default=[0.002, 0.005], help="to try (%(default)s)")
    parser.add_argument("--batches", type=arguments.whole(), nargs="+", default=[1280, 4096],
                        help="padded target tokens of a batch, to try (%(default)s)")
    parser.add_argument("--threads", type=arguments.whole(), default=os.cpu_count(),
                        help="threads of both sides (%(default)s)")
    parser.add_argument("--width", type=arguments.whole(), default=128,
                        help="width of the Transformer (%(default)s)")
    parser.add_argument("--ff", type=arguments.whole(), default=256,
                        help="width of its feed-forward layers (%(default)s)")
    parser.add_argument("--heads", type=arguments.whole(), default=4,
                        help="its attention heads (%(default)s)")
    parser.add_argument("--layers", type=arguments.whole(), default=4,
                        help="its layers of each side (%(default)s)")
    parser.add_argument("--dropout", type=arguments.number(0, most=1), default=0.3,
                        help="its dropout (%(default)s)")
    parser.add_argument("--warmup", type=arguments.whole(), default=800,
                        help="its updates of rising learning rate (%(default)s)")
    parser.add_argument("--pieces", type=arguments.whole(), default=8000,
                        help="its joint vocabulary (%(default)s)")
    parser.add_argument("--bfloat16", action="store_true",
                        help="train it under autocast to bfloat16")
    parser.add_argument("--config", type=arguments.file, nargs="+",
                        default=[ROOT / "configs/multi30k.yaml"],
                        help="settings of nmt-train, a model for each file (%(default)s)")
    parser.add_argument("--seed", type=arguments.whole(0), default=1,
                        help="seed of the Transformer (%(default)s)")
    parser.add_argument("--picture", type=arguments.new_file, help="PNG file of BLEU against speed")
    args = parser.parse_args()
    names = model_names(args.config)
    if len(set(names)) < len(names):
        parser.error(f"--config: {' '.join(names)}: two models have one name")
    if args.width < 4 or args.width % 2 or args.width % args.heads:
        parser.error(f"--width: {args.width}, expected an even number of at least 4 that --heads "
                     f"({args.heads}) divides")
    pairs = [[args.data / f"{part}.{side}" for side in ("en", "de")]
             for part in ("train", "val", "test2016")]
    arguments.need(parser, "--data", *(path for pair in pairs for path in pair))
    for pair in pairs:
        arguments.read_pair(*pair)
    arguments.need_programs(programs(), "nmt-train", "nmt-translate", "nmt-convert",
                            "nmt-bleu", "nmt-info")
    args.decoder_layers, args.device = args.layers, "cpu"
    return args


def model_names(configs):
    """A name for each file: its own, with that of its folder where several files have it."""
    stems = [config.stem for config in configs]
    return [stem if stems.count(stem) == 1 else f"{config.resolve().parent.name}-{stem}"
            for config, stem in zip(configs, stems)]


def timed(call, repeats=2):
    """The result and the least time of the calls."""
    best = None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - begin
        best = seconds if best is None else min(best, seconds)
    return result, best


def bleu(args, reference, hypotheses, name):
    path = args.work / f"{name}.txt"
    path.write_text("".join(line + "\n" for line in hypotheses), encoding="utf-8")
    out = subprocess.run([programs() / "nmt-bleu", reference, "-i", path, "-m", "bleu",
                          "-b", "-w", "1"], check=True, capture_output=True, text=True).stdout
    return out.strip()


def translate_rival(args, vocabulary, folder, compute):
    import ctranslate2
    pieces = [p + ["</s>"]
              for p in vocabulary.encode(lines(args.data / "test2016.en"), out_type=str)]
    rows = {}
    # One batch at a time by all threads, or as many batches as threads: the faster counts.
    for batch, shapes in ((64, ((1, args.threads), (args.threads, 1))),
                          (1, ((1, args.threads), (args.threads, 1)))):
        for inter, intra in dict.fromkeys(shapes):
            translator = ctranslate2.Translator(str(folder), compute_type=compute,
                                                inter_threads=inter, intra_threads=intra)

            def call():
                return translator.translate_batch(pieces, beam_size=4, max_batch_size=batch)
            results, seconds = timed(call)
            rows[batch] = max(rows.get(batch, 0), len(pieces) / seconds)
    return [vocabulary.decode_pieces(r.hypotheses[0]) for r in results], rows


def translate_ours(args, model, batch):
    def call():
        command = [programs() / "nmt-translate", "-m", model, "-i", args.data / "test2016.en",
                   "--mini-batch", str(batch), "--cpu-threads", str(args.threads), "--quiet"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # The time of the program without text: start, loading.
    def empty():
        return subprocess.run([programs() / "nmt-translate", "-m", model,
                               "--cpu-threads", str(args.threads), "--quiet"],
                              input="a\n", check=True, capture_output=True, text=True).stdout
    text, seconds = timed(call)
    _, idle = timed(empty)
    count = len(lines(args.data / "test2016.en"))
    return text.split("\n")[:-1], count / max(1e-9, seconds - idle)


def trained_model(args, name, config):
    """Trains a model of this project and converts it to int8; returns its folder and target tokens
    per second."""
    folder = args.work / name
    log_file = args.work / f"{name}.log"  # written when the training is finished
    record = args.work / f"{name}.json"
    wanted = {"config": config.read_text(encoding="utf-8"), "minutes": args.minutes,
              "threads": args.threads, "data": digests(args)}
    if folder.exists():
        check_settings(folder, json.loads(record.read_text()) if record.exists() else {}, wanted)
    else:
        record.write_text(json.dumps(wanted) + "\n")
    if not log_file.exists():
        done = subprocess.run(
            [programs() / "nmt-train", "--config", config, "--train-sets", args.data / "train.en",
             args.data / "train.de", "--valid-sets", args.data / "val.en", args.data / "val.de",
             "--model", folder, "--cpu-threads", str(args.threads),
             "--max-minutes", f"{args.minutes:g}"], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"nmt-train failed: {done.stderr.strip().splitlines()[-1]}")
        log_file.write_text(done.stderr)
    int8 = args.work / f"{name}-int8"
    if not int8.exists():
        converted = subprocess.run([programs() / "nmt-convert", "-m", folder, "-o", int8],
                                   stderr=subprocess.PIPE, text=True)
        if converted.returncode:
            sys.exit(f"nmt-convert failed: {converted.stderr.strip().splitlines()[-1]}")
    return folder, int8, training_speed(folder)


def training_speed(folder):
    """Target tokens per second over all progress lines of a training, as of the Transformer's whole
    training: without validations."""
    log = folder / "train.jsonl"
    events = [json.loads(line) for line in lines(log)] if log.exists() else []
    tokens = seconds = before = 0
    for event in events:
        if event.get("event") == "display" and event["target_tokens_per_second"] > 0:
            tokens += event["labels"] - before
            seconds += (event["labels"] - before) / event["target_tokens_per_second"]
            before = event["labels"]
    return tokens / seconds if seconds else 0.0


def weights_of(folder):
    info = subprocess.run([programs() / "nmt-info", "-m", folder], check=True, capture_output=True,
                          text=True).stdout
    return int(next(line.split()[1]
                    for line in info.splitlines() if line.startswith("total")).replace(",", ""))


def draw(rows, path):
    """BLEU against sentences per second; the line joins the points that no other one beats
    in both."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from units.plot_units import BASE, OTHER, front, save
    figure, axis = plt.subplots(figsize=(8, 5.5))
    points = [(row["batch 64"], row["bleu"],
               f"{row['model'].split(',')[0 if row['rival'] else 1].strip()}, {row['precision']}",
               row["rival"]) for row in rows]
    best = front(points)
    axis.plot([p[0] for p in best], [p[1] for p in best], color="#999999", linewidth=1, zorder=0)
    for speed, score, name, rival in points:
        axis.plot(speed, score, "s" if rival else "o", color=BASE if rival else OTHER)
        axis.annotate(name, (speed, score), fontsize=8,
                      xytext=(0, -14 if name.endswith("float32") else 7),
                      textcoords="offset points", ha="center")
    axis.set_xscale("log")
    axis.set_xlabel("decoded sentences a second, beam 4, batches of 64")
    axis.set_ylabel("BLEU")
    axis.margins(0.15)
    axis.grid(alpha=0.3, which="both")
    save(figure, path.parent, path.name)


def main():
    args = options()
    ensure_packages("torch", "numpy", "sentencepiece", "ctranslate2",
                    *(["matplotlib"] if args.picture else []))
    args.work.mkdir(parents=True, exist_ok=True)
    reference = args.data / "test2016.de"
    vocabulary = train_vocabulary(args)
    rival = trained_transformer(args, vocabulary)
    models = [(name, *trained_model(args, name, config))
              for name, config in zip(model_names(args.config), args.config)]
    rows = []

    def add(model, weights, training, precision, score, rates, is_rival):
        print(f"| {model} | {weights / 1e6:.2f}M | {training:,.0f} | {precision} | {score} | "
              f"{rates[64]:.0f} | {rates[1]:.0f} |", flush=True)
        rows.append({"model": model, "weights": weights, "training": training,
                     "precision": precision, "bleu": float(score),
                     "batch 64": rates[64], "batch 1": rates[1], "rival": is_rival})

    print(f"{args.minutes:g} minutes of {args.threads} threads; Transformer: learning rate "
          f"{rival['rate']}, {rival['words']} tokens a batch, {rival['updates']:,} updates, "
          f"development cross-entropy {rival['entropy']:.3f}\n")
    print("| model | weights | training, target tokens/s | precision | BLEU | sentences/s, "
          "batch 64 | batch 1 |")
    print("|---|---|---|---|---|---|---|")
    for compute in ("float32", "int8"):
        hypotheses, rates = translate_rival(args, vocabulary, args.work / "ctranslate2", compute)
        score = bleu(args, reference, hypotheses, f"transformer-{compute}")
        add("Transformer, PyTorch and CTranslate2", rival["parameters"], rival["speed"], compute,
            score, rates, True)
    for name, trained, int8, speed in models:
        for precision, folder in (("float32", trained), ("int8", int8)):
            hypotheses, fast = translate_ours(args, folder, 64)
            _, single = translate_ours(args, folder, 1)
            score = bleu(args, reference, hypotheses, f"{name}-{precision}")
            add(f"nmt, {name}", weights_of(trained), speed, precision, score,
                {64: fast, 1: single}, False)
    (args.work / "table.json").write_text(json.dumps(rows, indent=1) + "\n")
    if args.picture:
        draw(rows, args.picture)


if __name__ == "__main__":
    arguments.call(main)
