#!/usr/bin/env python3
"""Trains the language model of configs/language-models/ptb.yaml in PyTorch on the CPU, for
comparison with nmt-train in the same time, and prints the perplexity of the validation text
after each epoch.

The model: two LSTM layers of width 650 (medium size of Zaremba et al. 2014), tied softmax
with a bias, dropout 0.5 at the input and after each layer, matrices drawn from U(-0.05,
0.05), forget gates that start with the bias 1. Recipe: 20 streams, 35 steps with carried
states, SGD with the rate 35 and the gradient norm 0.143 of the mean loss per word (1 and 5
of the sum over 35 steps), divided by 1.2 in each epoch from the seventh on. The words, the
windows and the perplexity are those of nmt-train: validation reads 16 parts of whole lines
side by side, and </s> counts as a word.

The clock starts before the text is read and includes the validations, as that of `nmt-train
--max-minutes`. When it ends within an epoch, the last line has the perplexity at that time. Each
line has wall and CPU time, so that another program on the same core can be seen. Both programs on
two cores, side by side:

    taskset -c 0 nmt-train ptb/train.txt --valid-sets ptb/valid.txt --cpu-threads 1 \\
        --config configs/language-models/ptb.yaml --precision float32 --max-minutes 60 \\
        --model ptb-model
    taskset -c 1 scripts/bench/pytorch/ptb_pytorch.py --data ptb --minutes 60

Data: $NMT_DATA/ptb, or --data FOLDER with train.txt and valid.txt. If PyTorch is missing, the
script installs it in .venv."""
import argparse
import collections
import math
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.system import ensure_packages  # noqa: E402

START = time.perf_counter()
VALIDATION_PARTS = 16
EOS, UNK = 0, 1  # ids of </s> and <unk>


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data",
                        help="folder with train.txt and valid.txt (default: $NMT_DATA/ptb)")
    parser.add_argument("--minutes", type=arguments.number(0), default=60,
                        help="wall time of the run (%(default)s); 0: no limit")
    parser.add_argument("--epochs", type=arguments.whole(), default=39,
                        help="largest number of epochs (%(default)s)")
    parser.add_argument("--threads", type=arguments.whole(), default=1,
                        help="CPU threads (%(default)s)")
    parser.add_argument("--width", type=arguments.whole(), default=650,
                        help="width of embeddings and layers (%(default)s)")
    parser.add_argument("--layers", type=arguments.whole(), default=2,
                        help="LSTM layers (%(default)s)")
    parser.add_argument("--dropout", type=arguments.number(0, most=1), default=0.5,
                        help="dropout (%(default)s)")
    parser.add_argument("--streams", type=arguments.whole(), default=20,
                        help="streams of a batch (%(default)s)")
    parser.add_argument("--bptt", type=arguments.whole(), default=35,
                        help="steps of an update (%(default)s)")
    parser.add_argument("--learn-rate", type=arguments.number(above=0), default=35,
                        help="first learning rate (%(default)s)")
    parser.add_argument("--lr-decay", type=arguments.number(above=0), default=0.8333,
                        help="factor of each decay (%(default)s)")
    parser.add_argument("--lr-decay-start", type=arguments.whole(), default=7,
                        help="first epoch with a decayed rate (%(default)s)")
    parser.add_argument("--clip-norm", type=arguments.number(above=0), default=0.143,
                        help="largest gradient norm (%(default)s)")
    parser.add_argument("--forget-bias", type=arguments.number(), default=1,
                        help="initial bias of the forget gates (%(default)s)")
    parser.add_argument("--seed", type=arguments.whole(0), default=1234, help="seed (%(default)s)")
    parser.add_argument("--display", type=arguments.whole(), default=200,
                        help="updates between two lines of progress (%(default)s)")
    args = parser.parse_args()
    args.data = arguments.data_folder(parser, args.data, "ptb", ["train.txt", "valid.txt"])
    return args


def read_lines(path):
    """The words of each line that has some."""
    return [line.split() for line in arguments.read_lines(path) if line.split()]


def parts_of(lines, count):
    """Divides lines of ids into at most `count` runs of whole lines with nearly equal
    numbers of ids."""
    share = -(-sum(map(len, lines)) // count)
    parts = []
    for line in lines:
        if not parts or len(parts[-1]) >= share:
            parts.append([])
        parts[-1].extend(line)
    return parts


def vocabulary(lines):
    """Word -> id, in the order of the text."""
    words = collections.Counter(word for line in lines for word in line)
    words.pop("<unk>", None)
    return {word: i for i, word in enumerate(["</s>", "<unk>", *words])}


def make_model(args, words):
    """The model with `words` words, initialized."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(words, args.width)
            self.lstm = nn.LSTM(args.width, args.width, args.layers, dropout=args.dropout)
            self.bias = nn.Parameter(torch.zeros(words))
            self.drop = nn.Dropout(args.dropout)
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.uniform_(-0.05, 0.05) if parameter.dim() == 2 else parameter.zero_()
                for layer in range(args.layers):  # PyTorch's gates: i, f, g, o
                    getattr(self.lstm,
                            f"bias_ih_l{layer}")[args.width : 2 * args.width] = (args.forget_bias)

        def forward(self, ids, state):
            """ids [T,B] -> logits [T,B,V], state"""
            y, state = self.lstm(self.drop(self.embedding(ids)), state)
            return F.linear(self.drop(y), self.embedding.weight, self.bias), state

    return LanguageModel()


def padded(parts):
    """Inputs and labels [T,B] of runs of ids; the label of padding is -100."""
    import torch

    longest = max(map(len, parts))
    inputs = torch.tensor([[EOS] + part[:-1] + [EOS] * (longest - len(part)) for part in parts]).t()
    return inputs, torch.tensor([part + [-100] * (longest - len(part)) for part in parts]).t()


def perplexity(model, inputs, labels):
    import torch
    import torch.nn.functional as F

    model.eval()
    total, state = 0.0, None
    with torch.no_grad():
        for t in range(0, len(inputs), 64):
            logits, state = model(inputs[t : t + 64], state)
            total += F.cross_entropy(logits.flatten(0, 1), labels[t : t + 64].flatten(),
                                     reduction="sum").item()
    model.train()
    return math.exp(total / (labels >= 0).sum().item())


def seconds():
    return time.perf_counter() - START


def train(args, model, inputs, targets, validation):
    """Trains for --epochs or --minutes and prints the perplexity of the validation text after each
    epoch and at the end. `inputs` and `targets`: [T,B] of the whole text."""
    import torch
    import torch.nn.functional as F

    def validate(epochs):
        value = perplexity(model, *validation)
        print(f"epoch {epochs:.2f} | update {updates} | perplexity {value:.2f} | "
              f"{seconds() / 60:.1f} min wall, {time.process_time() / 60:.1f} min CPU", flush=True)

    optimizer = torch.optim.SGD(model.parameters(), lr=args.learn_rate)
    limit = args.minutes * 60 or math.inf
    starts = range(0, len(inputs), args.bptt)
    updates, words, begun = 0, 0, seconds()
    for epoch in range(args.epochs):
        rate = args.learn_rate * args.lr_decay ** max(0,
                                                      epoch + 1 - max(args.lr_decay_start, 2) + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        state = None
        for window, t in enumerate(starts):
            if seconds() >= limit:
                return validate(epoch + window / len(starts))
            logits, state = model(inputs[t : t + args.bptt], state)
            state = tuple(s.detach() for s in state)
            loss = F.cross_entropy(logits.flatten(0, 1), targets[t : t + args.bptt].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_norm)
            optimizer.step()
            updates += 1
            words += logits.shape[0] * logits.shape[1]
            if updates % args.display == 0:
                speed = words / (seconds() - begun)
                print(f"update {updates} | rate {rate:.3g} | loss {loss.item():.3f} | {speed:.0f} "
                      "words/s", flush=True)
                words, begun = 0, seconds()
        validate(epoch + 1)
        words, begun = 0, seconds()


def main():
    args = options()
    sides = {name: read_lines(args.data / f"{name}.txt") for name in ("train", "valid")}
    if (tokens := sum(len(line) + 1 for line in sides["train"])) < args.streams:
        arguments.fail(f"{args.data / 'train.txt'}: {tokens} tokens are too few for {args.streams} "
                       "--streams")
    ensure_packages("torch", "numpy")
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    numbers = vocabulary(sides["train"])
    encoded = {name: [[numbers.get(word, UNK) for word in line] + [EOS] for line in lines]
               for name, lines in sides.items()}
    model = make_model(args, len(numbers))
    text = torch.tensor([EOS] + [i for line in encoded["train"] for i in line])
    length = (len(text) - 1) // args.streams
    inputs, targets = [text[at : at + length * args.streams].view(args.streams,
                                                                  length).t().contiguous()
                       for at in (0, 1)]
    weights = sum(p.numel() for p in model.parameters())
    print(f"PyTorch {torch.__version__}, {args.threads} CPU thread{'s' * (args.threads > 1)}, "
          f"{weights:,} weights, {len(numbers):,} words, "
          f"{len(text) - 1:,} tokens, {-(-length // args.bptt):,} updates per epoch", flush=True)
    train(args, model, inputs, targets, padded(parts_of(encoded["valid"], VALIDATION_PARTS)))


if __name__ == "__main__":
    arguments.call(main)
