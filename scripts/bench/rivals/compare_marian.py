#!/usr/bin/env python3
"""Decoding and training speed beside Marian, in alternation, with models of the same sizes.

MODEL decides what is compared:
- type deep with GRUs: Marian's s2s, a bidirectional first encoder layer, two GRU transitions in the
  first decoder layer, skip connections and layer normalization
- type block with a self-attention encoder and SSRU decoder (configs/students/tiny11.yaml): Marian's
  transformer with --transformer-decoder-autoreg rnn and --dec-cell ssru

Marian's weights are those after one update. MODEL may be trained or not. Each side translates with
the same --max-length-factor; the table shows the target pieces of each side, since only a model
that is not trained has outputs of that length. Marian reads the pieces of MODEL's vocabulary;
splitting and joining them is part of nmt-translate's time. A model in int8 (nmt-convert) meets
Marian's intgemm8. A shortlist has the same lines on both sides; MODEL must have stored it. With one
thread CPU time is measured, with more wall time, in which Marian gives each thread batches of its
own. The time of one line is subtracted on both sides.

    scripts/bench/rivals/build_marian.sh marian
    scripts/bench/students/make_student.py DATA student
    scripts/bench/rivals/compare_marian.py marian/build student/int8 newstest2014.en --beam 1 \\
        --shortlist student/list 50 50
    scripts/bench/rivals/compare_marian.py marian/build model test2016.en --train train.en train.de

--train measures training of this shape instead: target tokens of --updates updates per second,
dropout 0, the first update subtracted. --words limits the batches of each side in its own way:
those of nmt-train have at most so many target tokens with padding, while Marian counts source
tokens without padding and ends a batch after the sentence that exceeds the limit. So the batches
are not equal; the table has the target tokens per update of both sides. Give it a few thousand
pairs: the time in which both sides read them is measured, too, and subtracted. Programs are taken
from $NMT_BUILD, else build/."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import processor_table  # noqa: E402
from common import arguments  # noqa: E402
from common.system import Clock, child_seconds, processor_facts, programs  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("marian", type=arguments.folder,
                        help="folder with marian, marian-decoder and marian-conv")
    parser.add_argument("model", type=arguments.folder,
                        help="model directory in float32 or int8, with one vocabulary")
    parser.add_argument("source", type=arguments.file, help="text, one sentence per line")
    parser.add_argument("--shortlist", nargs=3, metavar=("LIST", "FIRST", "BEST"),
                        help="shortlist of both sides")
    parser.add_argument("--lines", type=arguments.whole(), default=1000,
                        help="sentences that are translated (%(default)s)")
    parser.add_argument("--factor", type=arguments.number(above=0), default=1.05,
                        help="limit of target pieces per source piece (%(default)s)")
    parser.add_argument("--beam", type=arguments.whole(), nargs="+", default=[4, 1],
                        help="beam sizes (%(default)s)")
    parser.add_argument("--batch", type=arguments.whole(), nargs="+", default=[64, 1],
                        help="sentences of a batch (%(default)s)")
    parser.add_argument("--threads", type=arguments.whole(), default=1,
                        help="threads of both sides (%(default)s)")
    parser.add_argument("--rounds", type=arguments.whole(), default=3, help="rounds (%(default)s)")
    parser.add_argument("--train", nargs=2, type=arguments.file, metavar=("SOURCE", "TARGET"),
                        help="measure training on these texts")
    parser.add_argument("--updates", type=arguments.whole(2), default=40,
                        help="updates of a measured training (%(default)s)")
    parser.add_argument("--words", type=arguments.whole(), default=1280,
                        help="--mini-batch-words of both sides (%(default)s)")
    args = parser.parse_args()
    if args.shortlist:
        arguments.need(parser, "--shortlist", args.shortlist[0])
        if not (args.shortlist[1].isdecimal() and args.shortlist[2].isdecimal()):
            parser.error(f"--shortlist: FIRST and BEST are numbers, not {args.shortlist[1]} and "
                         f"{args.shortlist[2]}")
    arguments.need(parser, "model", args.model / "config.json", args.model / "vocab.spm")
    if args.train:
        arguments.read_pair(*args.train)
    for name in ("marian", "marian-decoder", "marian-conv"):
        arguments.need(parser, "marian", args.marian / name)
    arguments.need_programs(programs(), "nmt-translate", "nmt-vocab",
                            *(["nmt-train"] if args.train else []))
    args.device = "cpu"  # for Clock
    return args


def set_up_openblas():
    """One thread, since Marian has its own; and the kernels of AVX-512 for processors that OpenBLAS
    0.3.21 does not know."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "avx512vl" in processor_facts().get("flags", "").split():
        os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")


def run(*words, text=None):
    return subprocess.run([str(word) for word in words], input=text, check=True,
                          capture_output=True, text=True)


def encode(vocabulary, lines):
    return run(programs() / "nmt-vocab", "inspect", vocabulary, "--encode",
               text="".join(line + "\n" for line in lines)).stdout.split("\n")[:-1]


def shape(model):
    """Marian's options for the sizes of a model directory."""
    config = arguments.read_object(model / "config.json", "configuration of a model", "model")
    spec = config["model"]

    def need(**wanted):
        for name, value in wanted.items():
            name = name.replace("_", "-")
            if spec.get(name) != value:
                sys.exit(f"{model}: {name} is {spec.get(name)}, compared is only {value}")

    need(tied_embeddings_all=True)
    words = ["--dim-emb", spec["dim-emb"], "--dim-rnn", spec["dim-rnn"],
             "--enc-depth", spec["enc-depth"], "--dec-depth", spec["dec-depth"],
             "--tied-embeddings-all"]
    if spec["type"] == "block":
        need(encoder_mixer="attention", dec_cell="ssru", feed_forward="relu")
        words += ["--type", "transformer", "--transformer-decoder-autoreg", "rnn",
                  "--dec-cell", "ssru", "--transformer-heads", spec["heads"],
                  "--transformer-dim-ffn", spec["feed-forward-width"],
                  "--transformer-ffn-activation", "relu"]
    else:
        need(type="deep", enc_cell="gru", dec_cell="gru", context_aware=False, groups=1)
        words += ["--type", "s2s", "--enc-type", "bidirectional", "--enc-cell", "gru",
                  "--dec-cell", "gru", "--dec-cell-base-depth", 2, "--skip"]
        words += ["--layer-normalization"] * spec["layer-normalization"]
    return words, config.get("precision", "float32")


class Marian:
    def __init__(self, args, lines, folder):
        self.args, self.folder, self.lines = args, folder, lines
        shown = run(programs() / "nmt-vocab", "inspect", args.model / "vocab.spm",
                    "--pieces").stdout.split("\n")[:-1]
        rows = [re.fullmatch(r"\s*(\d+)\s(\S+)(\s.*)?", line) for line in shown]
        pieces = [row[2] for row in rows if row]
        order = ["</s>", "<unk>"] + [piece for piece in pieces if piece not in ("</s>", "<unk>")]
        self.vocabulary = folder / "vocab.yml"
        self.vocabulary.write_text("".join(f"{json.dumps(piece, ensure_ascii=False)}: {i}\n"
                                           for i, piece in enumerate(order)), encoding="utf-8")
        words, self.precision = shape(args.model)
        self.shape = [*words, "--dim-vocabs", len(order), len(order), "--vocabs", self.vocabulary,
                      self.vocabulary]

    def train_command(self, sources, targets, model, updates):
        args = self.args
        return [args.marian / "marian", *self.shape, "--train-sets", sources, targets,
                "--model", model, "--after-batches", updates, "--mini-batch-words", args.words,
                "--mini-batch", 1000, "--maxi-batch", 100, "--max-length", 100, "--max-length-crop",
                "--label-smoothing", 0.1, "--optimizer-params", 0.9, 0.98, 1e-9,
                "--learn-rate", 0.0005, "--clip-norm", 1, "--seed", 1, "--disp-freq", updates,
                "--save-freq", 1000000, "--overwrite", "--cpu-threads", args.threads,
                "--workspace", 1024, "--sync-sgd", "--log-level", "info"]

    def prepare(self):
        """A model of random weights, converted where MODEL is in int8."""
        few = self.folder / "few"
        few.write_text("\n".join(self.lines[:20]) + "\n", encoding="utf-8")
        model = self.folder / "model.npz"
        run(*self.train_command(few, few, model, 1))
        if self.precision == "int8":
            run(self.args.marian / "marian-conv", "--from", model,
                "--to", self.folder / "model.bin", "--gemm-type", "intgemm8",
                "--vocabs", self.vocabulary, self.vocabulary)
            model = self.folder / "model.bin"
        self.model = model

    def decode_command(self, beam, batch):
        args = self.args
        words = [args.marian / "marian-decoder", "--models", self.model,
                 "--vocabs", self.vocabulary, self.vocabulary, "--beam-size", beam,
                 "--normalize", 0.6, "--max-length-factor", args.factor, "--mini-batch", batch,
                 "--maxi-batch", 100, "--maxi-batch-sort", "src", "--cpu-threads", args.threads,
                 "--workspace", 512, "--max-length", 1000, "--quiet", "--quiet-translation"]
        if args.shortlist:
            words += ["--shortlist", *args.shortlist, 0]
        return words


def measured(clock, command, lines):
    """Seconds without those of one line, and the output."""
    start, _ = child_seconds(clock, command, input=lines[0] + "\n")
    seconds, out = child_seconds(clock, command, input="".join(line + "\n" for line in lines))
    return seconds - start, out


def compare_decoding(args, text, encoded, marian):
    clock, vocabulary = Clock(args), args.model / "vocab.spm"
    words = sum(len(line.split()) for line in text)
    marian.prepare()
    print("| beam | batch | side | source words/s | target pieces | target pieces/s | ratio of "
          "words/s | of pieces/s |\n" + "|---" * 8 + "|")
    for beam in args.beam:
        for batch in args.batch:
            ours = [programs() / "nmt-translate", "-m", args.model, "-b", beam,
                    "--mini-batch", batch, "--max-length-factor", args.factor,
                    "--max-length-offset", 0, "--cpu-threads", args.threads, "--quiet"]
            sides = [(ours, text, lambda out: encode(vocabulary, out.split("\n")[:-1])),
                     (marian.decode_command(beam, batch), encoded,
                      lambda out: out.split("\n")[:-1])]
            rounds = []
            for _ in range(args.rounds):
                row = []
                for command, lines, pieces_of in sides:
                    seconds, out = measured(clock, command, lines)
                    row.append((words / seconds,
                                sum(len(line.split()) for line in pieces_of(out)), seconds))
                rounds.append(row)
            by_words = statistics.median(ours[0] / theirs[0] for ours, theirs in rounds)
            by_pieces = statistics.median(ours[1] / ours[2] / (theirs[1] / theirs[2])
                                          for ours, theirs in rounds)
            for side, name in enumerate(("nmt-translate", "marian-decoder")):
                speed = statistics.median(row[side][0] for row in rounds)
                rate = statistics.median(row[side][1] / row[side][2] for row in rounds)
                ratios = f"{by_words:.2f} | {by_pieces:.2f}" if side == 0 else "1 | 1"
                print(f"| {beam} | {batch} | {name} | {speed:,.0f} | {rounds[0][side][1]:,} | "
                      f"{rate:,.0f} | {ratios} |", flush=True)


def compare_training(args, folder, marian):
    """Target tokens per second and per update of both sides, without the first update."""
    clock, spec = (Clock(args),
                   json.loads((args.model / "config.json").read_text(encoding="utf-8"))["model"])
    texts = [folder / "train.source", folder / "train.target"]
    for path, name in zip(args.train, texts):
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        name.write_text("\n".join(encode(args.model / "vocab.spm", lines)) + "\n", encoding="utf-8")
    settings = folder / "settings.yaml"
    names = ["type", "dim-emb", "dim-rnn", "enc-depth", "dec-depth", "layer-normalization",
             "attention", "heads", "tied-embeddings-all"]
    if spec["type"] == "block":
        names += ["encoder-mixer", "encoder-heads", "gate-branch", "unit-projection",
                  "feed-forward", "feed-forward-width"]
    settings.write_text("".join(f"{name}: {str(spec[name]).lower()}\n"
                                for name in names if name in spec), encoding="utf-8")

    def ours(updates):
        command = [programs() / "nmt-train", *args.train, "--config", settings,
                   "--unit", spec["dec-cell"], "--model", folder / "ours", "--no-reload",
                   "--vocabs", args.model / "vocab.spm", "--mini-batch", 0,
                   "--mini-batch-words", args.words, "--after", f"{updates}u", "--dropout", 0,
                   "--disp-freq", "1u", "--valid-freq", "1000000u", "--save-freq", "1000000u",
                   "--label-smoothing", 0.1, "--clip-norm", 1,
                   "--precision", "float32", "--noise", 0, "--max-length", 100,
                   "--exponential-smoothing", 0, "--cpu-threads", args.threads, "--quiet"]
        seconds, _ = child_seconds(clock, command)
        shown = [json.loads(line)
                 for line in (folder / "ours/train.jsonl").read_text().splitlines()]
        return seconds, [line for line in shown if line.get("event") == "display"][-1]["labels"]

    def theirs(updates):
        for left in folder.glob("theirs*"):  # Marian would go on from it
            left.unlink()
        command = marian.train_command(*texts, folder / "theirs.npz", updates)
        # the log is standard error
        seconds, log = child_seconds(clock, ["sh", "-c", 'exec "$@" 2>&1', "sh", *command])
        labels = re.findall(r"Cost [0-9.]+ \* ([0-9,]+) @", log)
        if not labels:
            sys.exit(f"marian printed no cost:\n{log}")
        return seconds, int(labels[-1].replace(",", ""))

    rates = []
    for _ in range(args.rounds):
        row = []
        for side in (ours, theirs):
            many, one = side(args.updates), side(1)
            if many[0] <= one[0]:
                sys.exit(f"one update takes as long as {args.updates}: give more --updates or "
                         "fewer pairs")
            labels = many[1] - one[1]
            row.append((labels / (many[0] - one[0]), labels / (args.updates - 1)))
        rates.append(row)
    print("| side | target tokens/s of training | ratio | target tokens per update |\n"
          "|---|---|---|---|")
    ratio = statistics.median(ours[0] / theirs[0] for ours, theirs in rates)
    for side, name in enumerate(("nmt-train", "marian")):
        speed, batch = (statistics.median(row[side][i] for row in rates) for i in (0, 1))
        print(f"| {name} | {speed:,.0f} | {ratio if side == 0 else 1:.2f} | {batch:,.0f} |")


def main():
    args = options()
    set_up_openblas()
    text = [line for line in arguments.read_lines(args.source) if line.strip()][:args.lines]
    encoded = encode(args.model / "vocab.spm", text)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        marian = Marian(args, encoded, folder)
        shown = run(args.marian / "marian-decoder", "--version")
        version = (shown.stdout + shown.stderr).split()[0]
        how = "CPU time" if args.threads == 1 else "wall time"
        print(f"Marian {version}, {processor_table.name_and_class()}, {args.threads} "
              f"thread{'s' * (args.threads > 1)}, {how}; "
              f"{args.model.name}, {marian.precision}")
        if args.train:
            compare_training(args, folder, marian)
        else:
            compare_decoding(args, text, encoded, marian)


if __name__ == "__main__":
    arguments.call(main)
