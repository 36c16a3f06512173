#!/usr/bin/env python3
"""Compares batched beam search with the same weights in nmt-translate and in PyTorch, in
alternation. The PyTorch side is the model of pytorch_model.py with a vectorized search by the same
rules: one tensor holds the hypotheses of a batch, the beams of a sentence share the encoder's
memory, and finished sentences leave the batch. Prints sentences per second and the ratio for every
beam and batch size.

The weights: --model DIRECTORY of a model that scripts/bench/pytorch/compare_pytorch.py could have
trained (deep, GRU with `reset: after` and biases, no layer normalization), else a model trained
here for --train-updates. The translations of both sides are compared first. Differing lines are
counted; more than 2 % of them end the script (different orders of summation can flip near ties).
With one thread CPU time is measured, with more wall time. The startup of nmt-translate, measured by
the translation of one line, is subtracted. Data: $NMT_DATA/multi30k, or --data FOLDER with
train.en, train.de, test2016.en. Our programs and PyTorch: as
scripts/bench/pytorch/compare_pytorch.py."""
import argparse
import math
import os
import pathlib
import re
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.pytorch import add_device_options, describe_device, train_ours  # noqa: E402
from common.system import Clock, child_seconds, ensure_packages, programs  # noqa: E402

BOS, EOS, UNK = 1, 2, 0


class Search:
    """Beam search over pytorch_model.Deep. A sentence with f finished hypotheses keeps the beam - f
    best extensions of its live ones. It ends when none is live, or when no live one can overtake
    the best finished one. Scores are divided by ((5 + length)/6)^A (Wu et al. 2016)."""

    def __init__(self, model, beam, device, penalty=0.6, factor=3.0, offset=10):
        self.model, self.beam, self.device, self.penalty, self.factor, self.offset = (
            model, beam, device, penalty, factor, offset)

    def rank(self, total, length):
        return total / ((5 + length) / 6) ** self.penalty

    def translate(self, sources):
        """Source ids of a batch, without </s> -> ids of the best translations."""
        import torch

        k, n = self.beam, len(sources)
        lengths = torch.tensor([len(s) + 1 for s in sources])
        ids = torch.full((int(lengths.max()), n), EOS)
        for b, source in enumerate(sources):
            ids[: len(source), b] = torch.tensor(source)
        memory, keys, blocked, final = self.model.encode(ids.to(self.device),
                                                         lengths.to(self.device))
        states = [start(final).repeat_interleave(k, 0) for start in self.model.start]
        spread = torch.arange(n, device=self.device).repeat_interleave(k)
        memory, keys, blocked = memory[:, spread], keys[:, spread], blocked[spread]
        totals = torch.full((n, k), -math.inf, device=self.device)
        totals[:, 0] = 0
        tokens = torch.full((n * k,), BOS, device=self.device)
        history = torch.empty((n, k, 0), dtype=torch.long, device=self.device)
        limit = [int(self.factor * len(s)) + self.offset for s in sources]
        # sentences still being searched; remaining beam width of each
        left, live = list(range(n)), [k] * n
        best = [(-math.inf, [])] * n
        for step in range(max(limit) + 1):
            features, states = self.model.decode(self.model.embedding(tokens)[None], states, memory,
                                                 keys, blocked)
            scores = torch.log_softmax(self.model.logits(features[0]), -1)
            scores[:, [UNK, BOS]] = -math.inf
            at_limit = torch.tensor([step >= limit[s] for s in left],
                                    device=self.device).repeat_interleave(k)
            if at_limit.any():
                ends = scores[:, EOS].clone()
                scores[at_limit] = -math.inf
                scores[:, EOS] = ends
            vocabulary = scores.shape[-1]
            totals, places = (totals[:, :, None] + scores.view(len(left), k, -1)).flatten(1).topk(k)
            parents, words = places // vocabulary, places % vocabulary
            totals = totals.masked_fill(torch.arange(k, device=self.device) >= torch.tensor(
                live, device=self.device)[:, None], -math.inf)
            history = torch.cat([history.gather(1, parents[:, :, None].expand(-1, -1, step)),
                                 words[:, :, None]], -1)
            host_words, host_totals = words.tolist(), totals.tolist()
            keep = []
            for i, sentence in enumerate(left):
                for j in range(k):
                    if host_words[i][j] == EOS and host_totals[i][j] > -math.inf:
                        live[i] -= 1
                        ranked = self.rank(host_totals[i][j], step + 1)
                        if ranked > best[sentence][0]:
                            best[sentence] = (ranked, history[i, j, :-1].tolist())
                        host_totals[i][j] = -math.inf
                # Log probabilities only decrease, and the longest output has the largest divisor.
                hope = self.rank(max(host_totals[i]), max(limit[sentence] + 1, step + 2))
                if live[i] > 0 and max(host_totals[i]) > -math.inf and hope > best[sentence][0]:
                    keep.append(i)
            totals = totals.masked_fill(words == EOS, -math.inf)
            if not keep:
                break
            rows = (torch.arange(len(left), device=self.device)[:, None] * k + parents)
            if len(keep) < len(left):
                chosen = torch.tensor(keep, device=self.device)
                rows, totals, words, history = (rows[chosen], totals[chosen], words[chosen],
                                                history[chosen])
                spread = (chosen[:, None] * k + torch.arange(k, device=self.device)).flatten()
                memory, keys, blocked = memory[:, spread], keys[:, spread], blocked[spread]
                left, live = [left[i] for i in keep], [live[i] for i in keep]
            states = [state[rows.flatten()] for state in states]
            tokens = words.flatten()
        return [ids for _, ids in best]


def translate_torch(model, args, pieces, lines, beam, batch):
    """The translations of the lines and the seconds taken, from text to text."""
    import torch

    clock = Clock(args)
    begin = clock()
    with torch.inference_mode():
        search = Search(model, beam, args.device)
        sources = pieces.encode(lines)
        order = sorted(range(len(lines)), key=lambda i: len(sources[i]))
        out = [""] * len(lines)
        for first in range(0, len(order), batch):
            part = order[first : first + batch]
            for i, ids in zip(part, search.translate([sources[i] for i in part])):
                out[i] = pieces.decode(ids)
    return out, clock() - begin


def translate_ours(args, folder, lines, beam, batch):
    command = [programs() / "nmt-translate", "-m", folder, "-b", beam, "--mini-batch", batch,
               "--cpu-threads", args.threads, "--device", args.device,
               "--precision", args.precision, "--quiet"]
    clock = Clock(args)
    start, _ = child_seconds(clock, command, input=lines[0] + "\n")
    seconds, out = child_seconds(clock, command, input="\n".join(lines) + "\n")
    return out.split("\n")[:-1], seconds - start


def shapes(text):
    """Pairs of beam and batch size."""
    found = [re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", shape) for shape in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"'{text}', expected a list such as 4x64,1x1")
    return [tuple(map(int, shape.groups())) for shape in found]


def check_model(folder):
    """The description of a model that pytorch_model.py computes. Another one ends the script."""
    spec = arguments.read_object(folder / "config.json", "configuration of a model",
                                 "model")["model"]
    wanted = {"type": "deep", "enc-cell": "gru", "dec-cell": "gru", "reset": "after", "bias": True,
              "layer-normalization": False, "context-aware": False, "groups": 1,
              "attention": "additive", "heads": 1, "tied-embeddings-all": True}
    for name, value in wanted.items():
        if spec.get(name) != value:
            sys.exit(
                f"{folder}: {name} is {spec.get(name)}, but pytorch_model.py supports only {value}")
    if spec["enc-depth"] != spec["dec-depth"]:
        sys.exit(f"{folder}: {spec['enc-depth']} and {spec['dec-depth']} layers, "
                 "but pytorch_model.py needs equal numbers")
    if not any(folder.glob("*.spm")):
        arguments.fail(f"{folder}: has no vocabulary (vocab.spm)")
    return spec


def read_model(folder):
    from pytorch_model import Deep, read_safetensors

    spec = check_model(folder)
    newest = next((path for path in (folder / "best", folder / "latest") if path.exists()), folder)
    weights = read_safetensors(newest / "model.safetensors")
    query = "first-layer" if spec["attention-query"] == "first-layer" else "recurrent"
    model = Deep(weights["decoder.embedding"].shape[0], spec["dim-emb"], spec["dim-rnn"], query,
                 0.0, spec["enc-depth"])
    model.load(weights)
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with train.en, train.de and test2016.en (default: "
                                       "$NMT_DATA/multi30k)")
    parser.add_argument("--model", type=arguments.folder, help="a model directory")
    parser.add_argument("--train-updates", type=arguments.whole(), default=400,
                        help="without --model (%(default)s)")
    parser.add_argument("--attention-query", choices=("first-layer", "recurrent"),
                        default="recurrent", help="attention query of the model trained here")
    parser.add_argument("--lines", type=arguments.whole(), default=200,
                        help="number of lines of test2016 (%(default)s)")
    parser.add_argument("--shapes", type=shapes, default="4x64,4x1,1x64,1x1",
                        help="comma-separated list of BEAMxBATCH (%(default)s)")
    parser.add_argument("--precision", default="float32",
                        help="precision of nmt-translate; outputs are only compared for float32 "
                             "(%(default)s)")
    parser.add_argument("--rounds", type=arguments.whole(), default=3)
    add_device_options(parser)
    args = parser.parse_args()
    data = arguments.data_folder(parser, args.data, "multi30k",
                                 ["test2016.en", *([] if args.model else ["train.en", "train.de"])])
    lines = arguments.read_lines(data / "test2016.en")[: args.lines]
    if args.model:
        check_model(args.model)
    arguments.need_programs(programs(), "nmt-translate", *([] if args.model else ["nmt-train"]))
    ensure_packages()
    import sentencepiece

    # of PyTorch
    print(describe_device(argparse.Namespace(**{**vars(args), "precision": "float32"})))
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.model
        if not folder:
            folder = pathlib.Path(temporary) / "model"
            trained = argparse.Namespace(**{**vars(args), "device": "cpu",
                                            "threads": os.cpu_count(), "precision": "float32"})
            train_ours(trained, data, folder, args.train_updates, 0.1)
        model = read_model(folder).to(args.device)
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(next(folder.glob("*.spm"))))
        print("\n| beam | batch | lines that differ | ours, sentences/s | PyTorch | ratio |\n"
              "|---|---|---|---|---|---|")
        for beam, batch in args.shapes:
            ours, theirs = [], []
            for _ in range(args.rounds):
                text, seconds = translate_ours(args, folder, lines, beam, batch)
                ours.append(seconds)
                rival, seconds = translate_torch(model, args, pieces, lines, beam, batch)
                theirs.append(seconds)
                differing = sum(a != b for a, b in zip(text, rival, strict=True))
                if args.precision == "float32" and differing > 0.02 * len(lines):
                    sys.exit(f"beam {beam}: {differing} of {len(lines)} translations differ: "
                             "no ratio")
            speed = [len(lines) / statistics.median(side) for side in (ours, theirs)]
            print(f"| {beam} | {batch} | {differing} of {len(lines)} | {speed[0]:.1f} | "
                  f"{speed[1]:.1f} | {speed[0] / speed[1]:.2f} |", flush=True)


if __name__ == "__main__":
    arguments.call(main)
