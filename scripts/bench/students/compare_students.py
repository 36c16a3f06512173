#!/usr/bin/env python3
"""Decoding speed of a student of tiny11's shape beside a Transformer of the same sizes in
CTranslate2, on one core, in CPU time; on several cores, in wall time: --threads share a batch, and
--workers have a batch each.

MODEL is a model directory of configs/students/tiny11.yaml; make_student.py makes one in
float32 and one in int8. Its precision is that of both sides. The Transformer has random
weights, the same vocabulary, 6+2 layers of width 256, feed-forward 1536 and 8 heads.
Neither side is to end a sentence early: nmt-translate gets --max-length-factor FACTOR and a
model that is not trained; CTranslate2 gets a forced length per batch, FACTOR times the mean
number of source pieces. Batches of 64 sentences sorted by length on both sides, greedy
search. With --shortlist, both sides use its lines: MODEL must have stored it (nmt-convert
--shortlist LIST FIRST BEST), and CTranslate2 gets a vocabulary map. Without --shortlist,
both sides score all pieces, also where MODEL has stored a shortlist.

The sides alternate; the table has medians. The times of both sides exclude the start of the program
and loading the model and the shortlist. That of nmt-translate includes splitting the text into
pieces, joining the pieces of the translations, and the memory that its first batch allocates.
CTranslate2 gets and gives pieces, and has translated the text once before. The script ends with an
error where the weights, the pieces of the shortlists or the target pieces of the two sides differ
by more than 5 %, unless --allow-unequal is given.

    scripts/bench/students/make_student.py DATA work
    scripts/bench/students/compare_students.py work/int8 newstest2014.en --shortlist work/list 50 50
    scripts/bench/students/compare_students.py work/float32 newstest2014.en --workers 2 \\
        --shortlist work/list 50 50
    scripts/bench/students/compare_students.py work/model newstest2014.en    # all pieces, float32

Programs are taken from $NMT_BUILD, else build/. If PyTorch, sentencepiece or CTranslate2 is
missing, the script installs them in .venv."""
import argparse
import collections
import json
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments  # noqa: E402
from common.system import ensure_packages, programs  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="model directory in float32 or int8")
    parser.add_argument("source", type=pathlib.Path, help="text, one sentence per line")
    parser.add_argument("--shortlist", nargs=3, metavar=("LIST", "FIRST", "BEST"),
                        help="shortlist of both sides")
    parser.add_argument("--lines", type=arguments.whole(), default=1000,
                        help="sentences that are translated (%(default)s)")
    parser.add_argument("--factor", type=arguments.number(above=0), default=1.05,
                        help="target pieces per source piece (%(default)s)")
    parser.add_argument("--batch", type=arguments.whole(), default=64,
                        help="sentences of a batch (%(default)s)")
    parser.add_argument("--threads", type=arguments.whole(), default=1,
                        help="threads that share a batch (%(default)s)")
    parser.add_argument("--workers", type=arguments.whole(), default=1,
                        help="batches at a time, each with --threads (%(default)s)")
    parser.add_argument("--rounds", type=arguments.whole(), default=3, help="rounds (%(default)s)")
    parser.add_argument("--allow-unequal", action="store_true",
                        help="only warn where weights or pieces differ by more than 5 %%")
    return parser.parse_args()


class Shortlist:
    """Target pieces of every sentence, and of each source piece, the most probable first."""

    def __init__(self, path, first, best):
        frequent, of_source = [], collections.defaultdict(list)
        for number, line in enumerate(arguments.read_lines(path), 1):
            try:
                target, source, weight = line.split(" ")
                (frequent if source == "NULL"
                 else of_source[source]).append((-float(weight), target))
            except ValueError:
                sys.exit(f"shortlist {path}:{number}: expected TARGET SOURCE PROBABILITY")
        self.frequent = list(dict.fromkeys(target for _, target in sorted(frequent)[:first]))
        self.of_source = {source: [target for _, target in sorted(targets)[:best]]
                          for source, targets in of_source.items()}
        self.size = sum(map(len, self.of_source.values()))

    def write_map(self, path):
        """CTranslate2's vocabulary map: the pieces of every sentence, then those of the
        source pieces."""
        with open(path, "w", encoding="utf-8") as out:
            out.write("\t" + " ".join(self.frequent) + "\n")
            for source, targets in self.of_source.items():
                out.write(source + "\t" + " ".join(targets) + "\n")


def stored_shortlist(model):
    """Numbers of frequent pieces and of translations of the shortlist that a model has stored
    (src/search/beam/shortlist_file.cpp)."""
    path = model / "shortlist.bin"
    if not path.is_file():
        sys.exit(f"{model}: has no stored shortlist; nmt-convert --shortlist LIST FIRST BEST "
                 "stores one")
    head = path.read_bytes()[:32]
    if len(head) < 32 or head[:8] != b"NMTSLIST":
        sys.exit(f"{path}: is not a stored shortlist")
    return struct.unpack("<6I", head[8:])[4:]


def check_equal(args, what, ours, theirs):
    """Ends the script where a quantity of the two sides differs by more than 5 %."""
    if abs(ours - theirs) <= 0.05 * theirs:
        return
    said = (
        f"{what}: {ours:,} of nmt-translate and {theirs:,} of CTranslate2 differ by more than 5 %")
    if not args.allow_unequal:
        sys.exit(f"{said}, so the speeds would be of unequal work; --allow-unequal compares them "
                 "nevertheless")
    print(f"warning: {said}", file=sys.stderr)


def shortlist_of(args):
    """The list of both sides, or None. MODEL must have stored one of the same size."""
    if not args.shortlist:
        return None
    path, first, best = args.shortlist
    if not (first.isdecimal() and best.isdecimal()):
        sys.exit(f"--shortlist: FIRST and BEST are numbers, not {first} and {best}")
    frequent, translations = stored_shortlist(args.model)
    given = Shortlist(path, int(first), int(best))
    # the stored list has </s> too
    check_equal(args, "frequent pieces of the shortlists", frequent - 1, len(given.frequent))
    check_equal(args, "translations of the shortlists", translations, given.size)
    return given


def precision(model):
    return arguments.read_object(model / "config.json",
                                 "configuration of a model").get("precision", "float32")


def weights(model):
    done = subprocess.run([programs() / "nmt-info", "-m", model, "--json"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"nmt-info failed:\n{done.stderr}")
    return json.loads(done.stdout)["parameters"]["total"]


def is_one_core(args):
    return args.threads * args.workers == 1


class Rival:
    def __init__(self, args, text, shortlist, folder):
        import ctranslate2
        import sentencepiece
        import torch
        from rivals.transformer import Transformer, to_ctranslate2
        vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(args.model / "vocab.spm"))
        pieces = [vocabulary.id_to_piece(i) for i in range(vocabulary.get_piece_size())]
        torch.manual_seed(1)
        sizes = argparse.Namespace(width=256, ff=1536, heads=8, layers=6, decoder_layers=2,
                                   dropout=0.0)
        model = Transformer(len(pieces), sizes)
        self.weights = sum(p.numel() for p in model.parameters())
        to_ctranslate2(model, pieces, folder)
        if shortlist:
            shortlist.write_map(folder / "vmap.txt")
        self.use_map = shortlist is not None
        self.translator = ctranslate2.Translator(str(folder), compute_type=precision(args.model),
                                                 inter_threads=args.workers,
                                                 intra_threads=args.threads)
        sources = sorted((vocabulary.encode(line, out_type=str) + ["</s>"] for line in text),
                         key=len)
        self.batches = [sources[i:i + args.batch] for i in range(0, len(sources), args.batch)]
        self.factor = args.factor
        self.clock = time.process_time if is_one_core(args) else time.perf_counter

    def run(self):
        """Seconds, and target pieces."""
        begin, found = self.clock(), []
        for batch in self.batches:
            length = max(1, round(self.factor * sum(len(s) - 1 for s in batch) / len(batch)))
            found += self.translator.translate_batch(batch, beam_size=1, max_batch_size=len(batch),
                                                     min_decoding_length=length,
                                                     max_decoding_length=length,
                                                     use_vmap=self.use_map, asynchronous=True)
        pieces = sum(len(each.result().hypotheses[0]) for each in found)
        return self.clock() - begin, pieces


def run_ours(args, text):
    command = [programs() / "nmt-translate", "-m", args.model, "-b", "1",
               "--mini-batch", str(args.batch), "--max-length-factor", str(args.factor),
               "--max-length-offset", "0", "--cpu-threads", str(args.threads),
               "--workers", str(args.workers), *([] if args.shortlist else ["--shortlist", "off"])]
    found = subprocess.run(command, input="".join(line + "\n" for line in text),
                           capture_output=True, text=True)
    said = re.search(r"\(([0-9.]+) s of CPU time\)" if is_one_core(args)
                     else r" lines? in ([0-9.]+) s ", found.stderr)
    rate = re.search(r"in ([0-9.]+) s .*source and ([0-9]+) target tokens/s", found.stderr)
    if found.returncode or not said or not rate:
        sys.exit(f"nmt-translate failed:\n{found.stderr}")
    return float(said[1]), round(float(rate[1]) * float(rate[2]))


def main():
    args = options()
    text, kind, shortlist = (arguments.read_lines(args.source)[:args.lines], precision(args.model),
                             shortlist_of(args))
    if not (programs() / "nmt-translate").is_file():
        sys.exit(f"{programs() / 'nmt-translate'}: is missing; build it, or set NMT_BUILD")
    ensure_packages("torch", "numpy", "sentencepiece", "ctranslate2")
    import ctranslate2
    words = sum(len(line.split()) for line in text)
    with tempfile.TemporaryDirectory() as folder:
        rival = Rival(args, text, shortlist, pathlib.Path(folder) / "transformer")
        check_equal(args, "weights", weights(args.model), rival.weights)
        # The first pass of CTranslate2 allocates memory.
        check_equal(args, "target pieces", run_ours(args, text)[1], rival.run()[1])
        rounds = [(run_ours(args, text), rival.run()) for _ in range(args.rounds)]
    print(f"{len(text)} sentences, {words} words; Transformer of {rival.weights:,} weights, "
          f"CTranslate2 {ctranslate2.__version__}, {kind}")
    print("| side | source words/s | target pieces | ratio |\n|---|---|---|---|")
    ratio = statistics.median(theirs[0] / ours[0] for ours, theirs in rounds)
    for name, side in (("nmt-translate", 0), ("CTranslate2", 1)):
        seconds = statistics.median(each[side][0] for each in rounds)
        print(f"| {name} | {words / seconds:,.0f} | {rounds[0][side][1]:,} | "
              f"{ratio if side == 0 else 1:.2f} |")


if __name__ == "__main__":
    arguments.call(main)
