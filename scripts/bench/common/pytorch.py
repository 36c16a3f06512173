"""What the comparisons with PyTorch share: options, the line about the machine, and the training of
the model that pytorch_model.py has, too."""
import json
import os
import pathlib

import processor_table
from common import arguments
from common.system import Clock, child_seconds, programs


def add_device_options(parser):
    parser.add_argument("--threads", type=arguments.whole(), default=os.cpu_count(),
                        help="CPU threads on both sides (%(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu",
                        help="device of both sides (%(default)s)")


def describe_device(args):
    """One line about PyTorch; on CUDA with the version of cuDNN."""
    import torch

    torch.set_num_threads(args.threads)
    if args.device == "cpu":
        how = "CPU time" if args.threads == 1 else "wall time"
        precision = "bfloat16" if getattr(args, "precision", "float32") == "bfloat16" else "float32"
        return (f"PyTorch {torch.__version__}, {processor_table.name_and_class()}, {args.threads} "
                f"thread{'s' * (args.threads > 1)}, {how}, {precision}")
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    precision = ("bfloat16 by autocast" if getattr(args, "precision", "float32") == "bfloat16"
                 else "float32 without TF32")
    return (f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, "
            f"cuDNN {torch.backends.cudnn.version()}, {precision}")


def train_ours(args, data, folder, updates, dropout, vocabulary=None):
    """Runs nmt-train for `updates` updates; returns target tokens per second over the
    second half."""
    command = [
        programs() / "nmt-train", data / "train.en", data / "train.de", "--model", folder,
        "--no-reload", "--type", "deep", "--unit", "gru",
        "--reset", "after", "--bias", "--layer-normalization=false",
        "--attention-query", args.attention_query, "--dim-emb", "256",
        "--dim-rnn", "256", "--enc-depth", "2", "--dec-depth", "2", "--tied-embeddings-all",
        "--mini-batch-words", "4096", "--mini-batch", "0", "--after", f"{updates}u",
        "--disp-freq", f"{max(1, updates // 2)}u", "--valid-freq", "1000000u",
        "--save-freq", "1000000u", "--optimizer", "adam", "--learn-rate", "0.0005",
        "--label-smoothing", "0.1", "--dropout-emb", str(dropout), "--dropout-rnn", str(dropout),
        "--dropout-readout", str(dropout), "--cpu-threads", str(args.threads), "--quiet",
    ]
    command += ["--vocabs", vocabulary] if vocabulary else ["--dim-vocabs", "8000"]
    command += ["--device", args.device]
    command += ["--precision", getattr(args, "precision", "float32")]
    clock = Clock(args)
    seconds, _ = child_seconds(clock, command)
    lines = [json.loads(line)
             for line in (pathlib.Path(folder) / "train.jsonl").read_text().splitlines()]
    shown = [line for line in lines if line.get("event") == "display"]
    if not clock.alone or updates < 8:
        return shown[-1]["target_tokens_per_second"]
    # CPU time: subtract a run with half the updates, which has the same startup and shutdown.
    half = [updates // 2 if word == f"{updates}u" else word for word in command]
    half[command.index("--after") + 1] = f"{updates // 2}u"
    less, _ = child_seconds(clock, half)
    return (shown[-1]["labels"] - shown[len(shown) // 2 - 1]["labels"]) / (seconds - less)
