#!/usr/bin/env python3
"""nmt-bleu -m rouge against PyPI's rouge-score on generated text. Argument: the folder of the
programs. Exits with 77 (skipped) where rouge-score cannot be installed."""
import json
import os
import random
import subprocess
import sys
import tempfile

from scorer_python import start_again_with

CASES = 60

try:
    from rouge_score.rouge_scorer import RougeScorer
except ImportError:
    start_again_with("rouge-score")

PROGRAM = os.path.join(sys.argv[1], "nmt-bleu")
WORDS = ("the a cat Cat sat on mat dog don't x.y 3.14 e-mail naïve Straße \u212aelvin İstanbul "
         "ΟΔΟΣ 東京 ... - , running runs "
         "a_b A1 \u00a0 '' ½ ² ١ ﬁn").split(" ")
TYPES = ["rouge1", "rouge2", "rougeL"]
NAMES = ["ROUGE-1", "ROUGE-2", "ROUGE-L"]


def ours(*arguments):
    run = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=60)
    assert run.returncode == 0, (arguments, run.stderr.decode())
    return run.stdout.decode()


def refused(part, *arguments):
    run = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=60)
    err = run.stderr.decode()
    assert run.returncode == 2 and run.stdout == b"" and err.count("\n") == 1 and part in err, err


def same(what, mine, other):
    assert abs(mine - other) < 1e-6, (what, mine, other)


def mean(values):
    return 100 * sum(values) / len(values)


with tempfile.TemporaryDirectory() as folder:

    def file(number, lines):
        path = os.path.join(folder, str(number))
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.writelines(line + "\n" for line in lines)
        return path

    rng = random.Random(7)
    scorer = RougeScorer(TYPES, use_stemmer=False)
    for case in range(CASES):
        count, references = rng.choice((1, 3, 12)), rng.choice((1, 1, 2, 3))
        longest = rng.choice((1, 4, 25))
        sentence = lambda: " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, longest)))
        streams = [[sentence() for _ in range(count)] for _ in range(references + 1)]
        paths = [file(i, lines) for i, lines in enumerate(streams)]
        expected = [scorer.score_multi([s[i] for s in streams[1:]], streams[0][i])
                    for i in range(count)]
        arguments = [*paths[1:], "-i", paths[0], "-w", "8"]
        reports = json.loads(ours(*arguments, "-m", "rouge"))
        assert [r["name"] for r in reports] == NAMES, reports
        for kind, report in zip(TYPES, reports):
            f1 = mean([e[kind].fmeasure for e in expected])
            same((case, kind, streams), report["score"], f1)
            parts = report["verbose_score"].strip("()").split()
            assert parts[0::3] == ["P", "R", "F1"], parts
            for text, value in zip(parts[2::3], (mean([e[kind].precision for e in expected]),
                                                 mean([e[kind].recall for e in expected]), f1)):
                assert abs(float(text) - value) < 0.00501, (case, kind, text, value, streams)
            lines = ours(*arguments, "-m", kind, "--sentence-level", "-b").split()
            for line, e in zip(lines, expected, strict=True):
                same((case, kind), float(line), 100 * e[kind].fmeasure)

    # The interval: the resamples of numpy's default_rng, as in sacreBLEU.
    import numpy

    streams = [[" ".join(rng.choice(WORDS) for _ in range(9)) for _ in range(40)] for _ in range(2)]
    paths = [file(i, lines) for i, lines in enumerate(streams)]
    values = numpy.array([scorer.score(t, h)["rougeL"].fmeasure for h, t in zip(*streams)]) * 100
    drawn = numpy.sort(values[numpy.random.default_rng(12345).choice(40, (1000, 40))].mean(axis=1))
    report = json.loads(ours(paths[1], "-i", paths[0], "-m", "rougeL", "--confidence", "-w", "8"))
    assert abs(report["confidence_mean"] - drawn.mean()) < 1e-4, (report, drawn.mean())
    assert abs(report["confidence_var"] - (drawn[974] - drawn[25]) / 2) < 1e-4, report
    # Several systems and several metrics.
    table = ours(paths[1], "-i", paths[0], paths[1], "-m", "bleu", "rouge",
                 "--paired-bs", "-f", "text")
    assert all(name in table for name in ("BLEU", *NAMES)), table

    refused("rouge1, rouge2 or rougeL", paths[1], "-i", paths[0], "-m", "rouge", "--sentence-level")
    refused("rougeL", paths[1], "-i", paths[0], "-m", "rouge3")
print(f"equal to rouge-score on {CASES} cases")
