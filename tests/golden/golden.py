"""Models that a version of nmt wrote, and what that version computes with them.

tests/golden/VERSION holds a corpus, one vocabulary, a directory per model and expected.json.
make_golden.py writes such a folder; test_golden.py compares a build with it."""
import dataclasses
import json
import lzma
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import zlib

SECONDS = 300
LOADER = pathlib.Path("/lib64/ld-linux-x86-64.so.2")
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
UPDATES, RESUMED_UPDATES = 3000, 3040
# Increased by a change of the kernels that changes the last bits of sums on purpose. expected.json
# stores it; only files of the present one are compared bit for bit.
ROUNDING = 3


@dataclasses.dataclass
class Release:
    """models: name -> the nmt-train options that its directory was trained with. resumed: stored
    with their training state. converted: name -> (model, precision) of nmt-convert."""
    models: dict
    resumed: tuple
    converted: dict


RELEASES = {
    "0.1": Release(
        models={
            "deep-lrn": ["--type", "deep", "--unit", "lrn", "--dim-emb", "8", "--dim-rnn", "12",
                         "--enc-depth", "1", "--dec-depth", "1", "--dropout", "0.05",
                         "--exponential-smoothing", "0.01"],
            "gnmt-lstm": ["--type", "gnmt", "--unit", "lstm", "--dim-emb", "8", "--dim-rnn", "8",
                          "--enc-depth", "3", "--dec-depth", "3", "--attention", "dot", "--heads",
                          "2", "--dropout", "0", "--no-layer-normalization"],
            "rnnsearch-gru": ["--type", "rnnsearch", "--context-aware", "--unit", "gru",
                              "--dim-emb", "8", "--dim-rnn", "8", "--no-tied-embeddings-all",
                              "--dropout", "0.05"],
        },
        resumed=("deep-lrn", "rnnsearch-gru"),
        converted={"deep-lrn-bfloat16": ("deep-lrn", "bfloat16"),
                   "rnnsearch-gru-int8": ("rnnsearch-gru", "int8")}),
    # Units and options that 0.1 does not have.
    "0.2": Release(
        models={
            "block-mingru": ["--type", "block", "--unit", "mingru", "--dim-emb", "16",
                             "--dim-rnn", "16", "--enc-depth", "2", "--dec-depth", "1",
                             "--encoder-mixer", "attention", "--encoder-heads", "2", "--heads",
                             "2", "--dropout", "0"],
            "rnnsearch-olrn": ["--type", "rnnsearch", "--unit", "olrn", "--dim-emb", "8",
                               "--dim-rnn", "12", "--gate-init", "constant", "--gate-bias", "1",
                               "--heads", "2", "--attention-projections", "--dropout", "0.05"],
            "deep-gru-groups": ["--type", "deep", "--unit", "gru", "--dim-emb", "8", "--dim-rnn",
                                "12", "--groups", "2", "--enc-depth", "1", "--dec-depth", "1",
                                "--gate-init", "chrono", "--dropout", "0"],
        },
        resumed=(),
        converted={"block-mingru-int8": ("block-mingru", "int8")}),
}

# One thread and own products: the same bits from every run on one instruction set.
DETERMINISTIC = ["--cpu-threads", "1", "--products", "own"]
TRAINING = ["--dim-vocabs", "80", "--mini-batch-words", "200", "--learn-rate", "0.02",
            "--lr-warmup", "20u", "--valid-freq", f"{UPDATES}u", "--save-freq", f"{UPDATES}u",
            "--disp-freq", f"{UPDATES // 2}u", "--keep-last", "1", "--early-stopping", "0",
            "--valid-metrics", "cross-entropy", *DETERMINISTIC]


class Programs:
    """The programs of a build, loaded as a processor of one level would load them."""

    def __init__(self, folder, level=None):
        self.folder = pathlib.Path(folder).resolve()
        self.prefix = [str(LOADER), "--glibc-hwcaps-mask", level] if level else []

    def run(self, program, *arguments, stdin=b""):
        command = [*self.prefix, str(self.folder / program), *map(str, arguments)]
        # Models in bfloat16 as every processor can compute them: products in float32.
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=SECONDS,
                              env={**os.environ, "NMT_BF16": "0"})
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n"
                               f"{done.stderr.decode(errors='replace')}")
        return done

    def level(self, model):
        """The level of the kernels that the loader takes."""
        found = re.search(r"x86-64-v\d",
                          self.run("nmt-translate", "--model", model).stderr.decode())
        return found[0] if found else "other"

    def build_info(self, key):
        return re.search(rf"^{key}: (.*)", self.run("nmt-train", "--build-info").stdout.decode(),
                         re.M)[1]


def installed_levels(folder):
    """The levels that the dynamic loader can be told to take; None: what it takes by itself."""
    return LEVELS if LOADER.exists() and os.uname().machine == "x86_64" else (None,)


def train(programs, corpus, model, more):
    """Returns the instruction set level that the run reports."""
    done = programs.run("nmt-train", corpus / "train.en", corpus / "train.de", "--valid-sets",
                        corpus / "train.en", corpus / "train.de", "--model", model, *TRAINING,
                        "--precision", "float32", *more)
    found = re.search(r"x86-64-v\d", done.stderr.decode())
    return found[0] if found else "other"


def resume(programs, corpus, model, options):
    """Continues a training to RESUMED_UPDATES; returns the level and the weights' checksums."""
    level = train(programs, corpus, model, [*options, "--after", f"{RESUMED_UPDATES}u"])
    return level, checksums(model / "latest" / "model.safetensors")


def checksums(path):
    """Tensor name -> [CRC-32 of its bytes, Euclidean norm] of a float32 safetensors file."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in sorted(json.loads(data[8:start]).items()):
        if name != "__metadata__":
            begin, end = (start + at for at in entry["data_offsets"])
            values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
            found[name] = [zlib.crc32(data[begin:end]), float(f"{math.hypot(*values):.6g}")]
    return found


def translate(programs, corpus, model, *more):
    return programs.run("nmt-translate", "--model", model, "--beam-size", 4, "--cpu-threads", 1,
                        "--max-length-factor", 1, "--quiet", *more,
                        stdin=(corpus / "source.en").read_bytes()).stdout.decode()


def translate_int8(programs, corpus, model):
    """Translations and their scores, the same on every instruction set."""
    lists = translate(programs, corpus, model, "--precision", "int8", "--n-best")
    best = {}
    for line in lists.splitlines():
        number, text, _, final = line.split(" ||| ")
        best.setdefault(number, f"{final} {text}")
    return list(best.values())


def score(programs, corpus, model):
    out = programs.run("nmt-score", "--model", model, "--train-sets", corpus / "train.en",
                       corpus / "train.de", "--cpu-threads", 1, "--quiet").stdout.decode()
    return list(map(float, out.split()))


def unpack(golden, name, target):
    """Lays out a stored model directory with its vocabulary and links, as the version left it."""
    shutil.copytree(golden / name, target, copy_function=shutil.copyfile)
    with lzma.open(golden / "vocab.spm.xz") as packed:
        (target / "vocab.spm").write_bytes(packed.read())
    for link, path in json.loads((golden / "expected.json").read_text())["links"][name].items():
        (target / link).symlink_to(path)
    return target
