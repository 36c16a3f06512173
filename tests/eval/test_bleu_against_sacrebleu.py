#!/usr/bin/env python3
"""nmt-bleu against the real sacreBLEU on generated text: scores, verbose parts, signatures,
intervals and p-values. Argument: the folder of the programs. Leaves with 77 (skipped) where
sacreBLEU is not to be had."""
import io
import json
import os
import random
import subprocess
import sys
import tempfile

from scorer_python import start_again_with

SCORES, INTERVALS, BOOTSTRAPS, RANDOMIZATIONS = 240, 24, 24, 8

try:
    import numpy
    import sacrebleu
except ImportError:
    start_again_with("sacreBLEU")

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.sacrebleu import main as sacrebleu_main
from sacrebleu.significance import PairedTest

PROGRAM = os.path.join(sys.argv[1], "nmt-bleu")
WORDS = (
    ("der die das und ein Haus Straße Äpfel naïve İstanbul ΟΔΟΣ ΣΟΦΟΣ Σ' A.Σ. ДОМ дом 東京 日本語。 "
     "مرحبا ﬁn ǅ 𝒜𝒷 👍 👩‍💻 e\u0301 "
     "1.234,56 3-4 10% 2012. 12:30 $5 €7 5€ ½ ² Ⅷ １２ a-b -5 x.y .5 5. ,6 a,b 1,2 &amp; &lt;b&gt; "
     "&quot;ja&quot; &amp;lt; <skipped> "
     "(hi) [x] «Ja» “so” ‚na‘ – — … ... ?! ; : / \\ ^_^ `t` ~ {k} | @ # it's don't O'Neil l’eau "
     "\u00ad \u200b \ufeffx a\u00a0b "
     "a\u2028b a\u0085b a\x1cb a\rb a\tb a\x00b 😀 🫨 ٠١ ٣،٤ ། ⁇ º ª ™ © +1 1+1 c++ =- .").split(" "))


def sentence(rng, longest=18):
    return rng.choice((" ", " ", " ", "  ", "")).join(rng.choice(WORDS)
                                                      for _ in range(rng.randint(0, longest)))


def noisy(rng, text, amount):
    words = text.split(" ")
    out = []
    for word in words:
        chance = rng.random()
        if chance < amount / 3:
            continue
        if chance < amount / 2:
            out.append(rng.choice(WORDS))
        elif chance < amount / 1.6:
            out += [word, word]
        else:
            out.append(word.swapcase() if chance > 1 - amount / 8 else word)
    return " ".join(out)


def corpus(rng, systems, references):
    """Lists of lines: references first, then systems; sometimes with empty or very short
    sentences only."""
    lines = rng.choice((1, 2, 3, 8, 20, 40))
    longest = rng.choice((2, 4, 18, 18))
    sources = [sentence(rng, longest) for _ in range(lines)]
    streams = [sources] + [[noisy(rng, s, 0.5) for s in sources] for _ in range(references - 1)]
    for amount in [rng.choice((0.0, 0.3, 0.6, 1.2)) for _ in range(systems)]:
        streams.append(["" if rng.random() < 0.08 else noisy(rng, s, amount) for s in sources])
    for lines in streams:
        # a byte order mark at the very beginning is none of the text here
        lines[0] = lines[0].lstrip("\ufeff")
    return streams


def without_version(text):
    return text.replace("nmt-" + VERSION, "X").replace(sacrebleu.__version__, "X")


def ours(arguments):
    run = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=120)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.decode())
    return run.stdout.decode()


def theirs(arguments):
    """sacreBLEU's own program in a fork, which saves importing it anew."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(write, 1)
        sys.argv = ["sacrebleu", *arguments, "--quiet", "--no-color"]
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), encoding="utf-8")
        try:
            sacrebleu_main()
            status = 0
        except SystemExit as leaving:
            status = leaving.code or 0
        except BaseException:
            status = 1
        sys.stdout.flush()
        os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read().decode()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("sacreBLEU failed")
    return text


def options(rng, *metrics):
    """-m with the metrics, or no -m for BLEU, and options of these metrics."""
    out = ["-w", str(rng.choice((1, 2, 4, 9)))]
    if not metrics or "bleu" in metrics:
        method = rng.choice(("exp", "exp", "floor", "add-k", "none"))
        out += ["--tokenize", rng.choice(("13a", "13a", "intl", "none")), "--smooth-method", method]
        if method in ("floor", "add-k") and rng.random() < 0.5:
            out += ["--smooth-value", rng.choice(("0.01", "0.5", "1", "2.5"))]
        out += rng.choice(([], ["-lc"]))
    if "chrf" in metrics:
        out += rng.choice(([], ["--chrf-lowercase"]))
        out += rng.choice(([], ["--chrf-word-order", "2"], ["-cw", "1", "-cc", "4"],
                           ["--chrf-beta", "3"], ["--chrf-whitespace"]))
    return out + (["-m", *metrics] if metrics else [])


class Files:
    def __init__(self, folder):
        self.folder = folder

    def write(self, streams):
        paths = []
        for number, lines in enumerate(streams):
            path = os.path.join(self.folder, f"stream{number}")
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write("".join(line + "\n" for line in lines))
            paths.append(path)
        return paths


def check(what, mine, other, streams):
    if mine != other:
        print(f"DIFFERENT: {what}\n nmt-bleu:  {mine}\n sacreBLEU: {other}\n"
              f" text: {json.dumps(streams)}")
        sys.exit(1)


def compare_scores(rng, files):
    for case in range(SCORES):
        references = rng.choice((1, 1, 2, 3))
        streams = corpus(rng, 1, references)
        paths = files.write(streams)
        metrics = rng.choice((["bleu", "chrf", "ter"], ["chrf"], ["ter"], []))
        arguments = [*paths[:references], "-i", paths[-1], *options(rng, *metrics)]
        arguments += rng.choice((["-f", "text"], ["-f", "json"], ["-b"], ["-b", "-f", "text"]))
        if "chrf" not in arguments and rng.random() < 0.2:
            arguments += ["--sentence-level"]
        check(arguments, without_version(ours(arguments)),
              without_version(theirs(arguments)), streams)


def compare_intervals(rng, files):
    for case in range(INTERVALS):
        streams = corpus(rng, 1, 1)
        paths = files.write(streams)
        arguments = [paths[0], "-i", paths[1], *options(rng, rng.choice(("chrf", "bleu", "ter"))),
                     "--confidence", "--confidence-n", str(rng.choice((2, 100, 1000))),
                     "-f", rng.choice(("text", "json"))]
        try:
            other = theirs(arguments)
        # resamples without any match: statistics.mean refuses float beside float32
        except RuntimeError:
            ours(arguments)
            continue
        check(arguments, without_version(ours(arguments)), without_version(other), streams)


def compare_paired(rng, files, kind, cases):
    for case in range(cases):
        streams = corpus(rng, rng.choice((2, 3)), 1)
        paths = files.write(streams)
        trials = rng.choice((50, 300, 1000))
        lines = [[line.rstrip() for line in stream] for stream in streams]
        order = rng.choice((0, 2))
        metrics = {"BLEU": BLEU(references=lines[:1]),
                   "CHRF": CHRF(word_order=order, references=lines[:1])}
        systems = [("Baseline: " + paths[1] if i == 0 else path, lines[i + 1])
                   for i, path in enumerate(paths[1:])]
        signatures, expected = PairedTest(systems, metrics, None, test_type=kind,
                                          n_samples=trials)()
        arguments = [paths[0], "-i", *paths[1:], "-m", "bleu", "chrf", "-cw", str(order),
                     f"--paired-{kind}", f"--paired-{kind}-n", str(trials)]
        mine = json.loads(ours(arguments))
        check(arguments, [row["system"] for row in mine], expected["System"], streams)
        for metric in signatures:
            for row, result in zip(mine, expected[metric]):
                what = (arguments, metric, row["system"])
                check(what + ("p",), row[metric]["p_value"], result.p_value, streams)
                for key in ("score", "mean", "ci"):
                    value, other = row[metric][key], getattr(result, key)
                    check(what + (key,), value if value is None else f"{value:.9f}",
                          other if other is None else f"{other:.9f}", streams)
        text = without_version(ours([*arguments, "-f", "text"]))
        for signature in signatures.values():
            if without_version(str(signature)) not in text:
                check(arguments, text, str(signature), streams)


VERSION = ours(["--version"]).split()[1]
with tempfile.TemporaryDirectory() as folder:
    generator = random.Random(20)
    compare_scores(generator, Files(folder))
    if int(numpy.__version__.split(".")[0]) < 2:
        print("numpy before 2 computes resampled scores in another precision: resampling not "
              "compared")
    else:
        compare_intervals(generator, Files(folder))
        compare_paired(generator, Files(folder), "bs", BOOTSTRAPS)
    compare_paired(generator, Files(folder), "ar", RANDOMIZATIONS)
print(f"equal to sacreBLEU {sacrebleu.__version__} on "
      f"{SCORES + INTERVALS + BOOTSTRAPS + RANDOMIZATIONS} cases")
