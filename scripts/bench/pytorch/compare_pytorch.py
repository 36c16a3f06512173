#!/usr/bin/env python3
"""Trains the same GRU model here and in PyTorch on the same data, in alternation, and prints the
ratio of target tokens per second.

The model: `deep`, GRU (reset: after, as in nn.GRU) of width 256, bidirectional first layer, one
more encoder layer, two decoder layers, additive attention, 8K joint BPE, batches of 4096 padded
target tokens, Adam, clipping, dropout 0.2, label smoothing 0.1. Both sides have the same
parameters: before the timing, our weights are copied into PyTorch and the losses of one batch are
compared, in float32. With one thread CPU time is measured, with more wall time; on CUDA wall time
with the device synchronized. `--precision bfloat16`: our mixed precision and PyTorch under
autocast, which leaves weights, optimizer, loss and normalization in float32 on both sides. The
first line names the processor and its class (docs/benchmarks/processors.md). Programs are taken
from $NMT_BUILD, else build/. Data: $NMT_DATA/multi30k, or --data FOLDER with train.en, train.de.
The last line is `ratio: N.NN`: ours over PyTorch's, medians over the rounds.

If PyTorch is missing, the script creates a virtual environment in .venv and installs torch, numpy
and sentencepiece there."""
import argparse
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.pytorch import add_device_options, describe_device, train_ours  # noqa: E402
from common.system import Clock, ensure_packages, programs  # noqa: E402


def train_files(data):
    return [data / f"train.{side}" for side in ("en", "de")]


def encoded(vocabulary, data):
    import sentencepiece

    sp = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    sides = arguments.read_pair(*train_files(data))
    return [(s, t) for s, t in zip(*[sp.encode(side) for side in sides]) if s and t and len(s) < 100
                          and len(t) < 100]


def batches_of(pairs, words, seed):
    """Batches of at most `words` padded target tokens, of similar lengths, as tensors."""
    import random

    import torch

    pairs = sorted(pairs, key=lambda p: (len(p[1]), len(p[0])))
    batches, batch, longest = [], [], 0
    for pair in pairs:
        longest = max(longest, len(pair[1]) + 1)
        if batch and longest * (len(batch) + 1) > words:
            batches.append(batch)
            batch, longest = [], len(pair[1]) + 1
        batch.append(pair)
    batches.append(batch)
    random.Random(seed).shuffle(batches)

    def padded(rows, fill):
        out = torch.full((max(map(len, rows)), len(rows)), fill)
        for b, row in enumerate(rows):
            out[: len(row), b] = torch.tensor(row)
        return out

    for batch in batches:
        sources, targets = [s + [2] for s, _ in batch], [t + [2] for _, t in batch]
        yield (padded(sources, 2), torch.tensor([len(s) for s in sources]),
               padded([[1] + t[:-1] for t in targets], 2), padded(targets, -1))


def train_torch(args, model, batches, updates):
    import torch

    model.train()
    clock = Clock(args)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-9,
                                 fused=not args.no_fused_adam)
    tokens = 0
    for i, batch in enumerate(itertools.islice(itertools.cycle(batches), updates)):
        if i == updates // 2:
            start = clock()
        with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bfloat16"):
            loss, n = model(*(tensor.to(args.device) for tensor in batch), 0.1)
        (loss / n).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tokens += n if i >= updates // 2 else 0
    return tokens / (clock() - start)


def check_losses(args, data, pairs, folder, vocabulary):
    """The loss of 100 pairs with our weights, by nmt-score and by PyTorch."""
    import sentencepiece
    import torch
    from pytorch_model import Deep, read_safetensors

    weights = read_safetensors(pathlib.Path(folder) / "latest" / "model.safetensors")
    model = Deep(weights["decoder.embedding"].shape[0], 256, 256, args.attention_query, 0.2)
    model.load(weights)
    ours_count = sum(w.numel() for w in weights.values())
    theirs_count = sum(p.numel() for p in model.parameters())
    print(f"parameters: ours {ours_count}, PyTorch's {theirs_count}")
    with tempfile.TemporaryDirectory() as temporary:
        paths = [pathlib.Path(temporary) / side for side in ("en", "de")]
        for side, path in zip(("en", "de"), paths):
            lines = arguments.read_lines(data / f"train.{side}")[:100]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        out = subprocess.run([str(programs() / "nmt-score"), "-m", str(folder), "-t",
                              *map(str, paths), "--normalize", "0", "--quiet"], check=True,
                             capture_output=True, text=True).stdout
        ours = -sum(float(line.split()[0]) for line in out.splitlines())
        sp = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
        texts = [sp.encode(path.read_text(encoding="utf-8").split("\n")[:-1]) for path in paths]
    model.eval()
    with torch.no_grad():
        theirs = sum(model(*batch, 0.0)[0].item()
                     for batch in batches_of(list(zip(*texts)), 4096, 1))
    print(f"loss of 100 pairs: ours {ours:.3f}, PyTorch's {theirs:.3f}, relative difference "
          f"{abs(ours - theirs) / theirs:.1e}")
    if abs(ours - theirs) > 1e-4 * theirs or ours_count != theirs_count:
        sys.exit("the two models differ: no ratio computed")
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data",
                        help="folder with train.en and train.de (default: $NMT_DATA/multi30k)")
    parser.add_argument("--attention-query", choices=("first-layer", "recurrent"),
                        default="first-layer",
                        help="first-layer lets PyTorch run every layer as one nn.GRU call; "
                             "recurrent needs a loop of cells")
    parser.add_argument("--updates", type=arguments.whole(), default=40,
                        help="updates per round; the second half is timed")
    parser.add_argument("--rounds", type=arguments.whole(), default=3)
    add_device_options(parser)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32",
                        help="bfloat16: our --precision bfloat16 and PyTorch under autocast "
                             "(%(default)s)")
    parser.add_argument("--no-fused-adam", action="store_true")
    parser.add_argument("--compile", action="store_true", help="torch.compile the PyTorch model")
    args = parser.parse_args()
    data = arguments.data_folder(parser, args.data, "multi30k", ["train.en", "train.de"])
    arguments.read_pair(*train_files(data))
    arguments.need_programs(programs(), "nmt-train", "nmt-score")
    ensure_packages()
    import torch

    print(f"{describe_device(args)}, attention-query "
          f"{args.attention_query}{', compiled' if args.compile else ''}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "model"
        train_ours(args, data, folder, 2, 0.2)
        vocabulary = next(folder.glob("*.spm"))
        kept = pathlib.Path(temporary) / "kept.spm"
        kept.write_bytes(vocabulary.read_bytes())
        pairs = encoded(kept, data)
        model = check_losses(args, data, pairs, folder, kept)
        batches = list(batches_of(pairs, 4096, 1))
        model = model.to(args.device)
        if args.compile:
            model = torch.compile(model, dynamic=True)
        ours, theirs = [], []
        for round_number in range(1, args.rounds + 1):
            ours.append(train_ours(args, data, folder, args.updates, 0.2, kept))
            theirs.append(train_torch(args, model, batches, args.updates))
            print(f"round {round_number}: ours {ours[-1]:.0f}, PyTorch {theirs[-1]:.0f} target "
                  "tokens/s", flush=True)
    print(f"ratio: {statistics.median(ours) / statistics.median(theirs):.2f}")


if __name__ == "__main__":
    arguments.call(main)
