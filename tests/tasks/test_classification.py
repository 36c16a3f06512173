#!/usr/bin/env python3
"""nmt-train --task classification and nmt-classify on generated texts and pairs, bad input, resumed
training. Argument: the folder of the programs."""
import os
import random
import re
import subprocess
import sys
import tempfile

PROGRAMS = sys.argv[1]
SMALL = ["--dim-emb", "16", "--dim-rnn", "16", "--threads", "1", "--mini-batch-words", "256",
         "--learn-rate", "0.01", "--dropout", "0", "--vocab-type", "words", "--unit", "lrn"]


def run(program, *arguments, stdin=""):
    done = subprocess.run([os.path.join(PROGRAMS, program), *arguments], input=stdin.encode(),
                          capture_output=True, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ok(program, *arguments, **more):
    code, out, err = run(program, *arguments, **more)
    assert code == 0, (program, arguments, code, err)
    return out, err


def refused(status, parts, program, *arguments, **more):
    code, out, err = run(program, *arguments, **more)
    errors = [line for line in err.splitlines() if line.startswith("error")]
    assert code == status and out == "" and len(errors) == 1, (arguments, code, out, err)
    for part in parts:
        assert part in err, (arguments, part, err)


WORDS = [c + v for c in "bdgklmnprst" for v in "aeiou"]


def texts(rng, count):
    """The label is the word after the only X."""
    out = []
    for _ in range(count):
        words = [rng.choice(WORDS) for _ in range(rng.randint(2, 12))]
        label = rng.choice(["red", "green", "blue"])
        at = rng.randint(0, len(words))
        words[at:at] = ["X", label]
        words += [rng.choice(["red", "green", "blue"])]
        out.append((label, " ".join(words)))
    return out


def pairs(rng, count):
    """Whether both texts begin with the same color."""
    out = []
    for _ in range(count):
        one, two = rng.choice(["red", "blue"]), rng.choice(["red", "blue"])
        tail = lambda: " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4)))
        out.append(("same" if one == two else "other", f"{one} {tail()}\t{two} {tail()}"))
    return out


with tempfile.TemporaryDirectory() as folder:

    def file(name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        return path

    def lines(data):
        return "".join(f"{label}\t{text}\n" for label, text in data)

    rng = random.Random(3)
    for name, make, epochs in (("texts", texts, "8e"), ("pairs", pairs, "15e")):
        data, held = make(rng, 600), make(rng, 100)
        train, valid = file(name, lines(data)), file(name + ".valid", lines(held))
        model = os.path.join(folder, name + ".model")
        _, log = ok("nmt-train", "--task", "classification", train, "--valid-sets", valid,
                    "--model", model, "--after", epochs, *SMALL)
        score = ok("nmt-classify", model, "--evaluate", valid)[0]
        rate = float(score.split()[2])
        assert score.startswith("error rate ") and rate < 8, (name, score, log)
        assert score.strip() in log, (score, log)
        found = ok("nmt-classify", model,
                   stdin="".join(text + "\n" for _, text in held))[0].split("\n")
        wrong = sum(f != label for f, (label, _) in zip(found, held))
        assert len(found) == len(held) + 1 and abs(wrong - rate) < 1e-6, (wrong, rate)

    model = os.path.join(folder, "texts.model")
    assert len(ok("nmt-classify", model, stdin="\n\n\ufeff a\x00\nX red")[0].splitlines()) == 4
    refused(3, ["standard input: line 2 has 3 fields; this classifier reads single texts"],
            "nmt-classify", model, stdin="X red\na\tb\tc\n")
    refused(3, ["standard input: line 1 has 2 fields"], "nmt-classify", model, "-i", "-",
            stdin="red a\tred b\n")
    refused(3, ["has pairs of texts; this classifier reads single texts"], "nmt-classify", model,
            "--evaluate", os.path.join(folder, "pairs.valid"))
    pair_model = os.path.join(folder, "pairs.model")
    refused(3, ["line 1 has 1 field; this classifier reads pairs of texts"], "nmt-classify",
            pair_model, stdin="red a\n")
    refused(3, ["has single texts"], "nmt-classify", pair_model,
            "--evaluate", os.path.join(folder, "texts.valid"))
    refused(2, ["labels: pair, but"], "nmt-train", "--task", "classification",
            os.path.join(folder, "texts"), "--labels", "pair", "--model", model + "2")
    # A blank line has no label, and changes no other.
    red, blue = ok("nmt-classify", model, stdin="X red\nX blue\n")[0].split()
    assert ok("nmt-classify", model,
              stdin="\nX red\n \t \r\nX blue\n\t\n")[0] == f"\n{red}\n\n{blue}\n\n"
    assert (ok("nmt-classify", model, stdin="\n\n")[0] == "\n\n"
            and ok("nmt-classify", model, stdin="")[0] == "")
    train, valid = os.path.join(folder, "texts"), os.path.join(folder, "texts.valid")

    # Cropped texts: the first is named, and their number told.
    longest = "X red" + " da" * 998
    for arguments, text in ((("-i",), "{1}\n\n{0} da\nX red\n{0} da da\n"),
                            (("--evaluate",),
                             "red\t{1}\n\nred\t{0} da\nred\tX red\nred\t{0} da da\n")):
        _, err = ok("nmt-classify", model, *arguments, file("long", text.format(longest, longest)))
        warnings = [line for line in err.splitlines() if "warning" in line]
        assert (len(warnings) == 2 and "line 3 has 1001 tokens" in warnings[0]
                and "2 lines were longer than 1000 tokens" in warnings[1]), err
        assert "1000" not in ok("nmt-classify", model, *arguments,
                                file("long",
                                     text.split("\n")[0].format(longest, longest) + "\n"))[1]

    # A text without a token counts in an evaluation, as in validation.
    out, _ = ok("nmt-classify", model, "--evaluate", file("odd", "red\t\u200b\nred\tX red\n"))
    assert "of 2)" in out, out

    # Examples that are held out: long ones are cropped, and labels that no others have are told.
    held_out = lines(("rare" if i in (3, 7) else "red", "X da " * (600 if i in (3, 7) else 1))
                     if i % 2 else ("blue", "da") for i in range(40))
    _, err = ok("nmt-train", "--task", "classification", file("held", held_out),
                "--model", os.path.join(folder, "held model"), "--after", "1u", *SMALL)
    assert f"classify with: nmt-classify '{folder}/held model' < TEXT > LABELS" in err, err
    assert ("cropped to 1000 tokens" in err and "does not have the labels of" in err
            and "rare" in err), err

    # Labels that the model does not have are errors, and told once.
    held = [line.split("\t") for line in open(valid, encoding="utf-8").read().splitlines()]
    other = file("other", lines(("pink" if label == "red" else label, text) for label, text in held)
                          + "gray\tX red\n")
    found = ok("nmt-classify", model,
               stdin="".join(text + "\n" for _, text in held))[0].splitlines()
    wrong = 1 + sum(f != label or label == "red" for f, (label, _) in zip(found, held, strict=True))
    out, err = ok("nmt-classify", model, "--evaluate", other)
    assert out.startswith("error rate ") and f"({wrong} of {len(held) + 1})" in out, (out, wrong)
    reds = sum(label == "red" for label, _ in held)
    told = (f"warning: {other}: the model does not have the labels of {reds + 1} texts, "
            f"which count as errors: pink ({reds}), gray (1)\n")
    assert err.count("does not have the labels") == 1 and told in err, (err, told)
    assert "does not have the labels" not in ok("nmt-classify", model, "--evaluate", valid)[1]
    _, err = ok("nmt-train", "--task", "classification", train, "--valid-sets", other,
                "--model", model + "3", "--after", "1u", *SMALL)
    assert told in err and "cropped" not in err, err

    # Without a text of a known label there is no cross-entropy, which would look like a
    # perfect one.
    alien = file("alien", lines(("pink", text) for _, text in held))
    refused(3, [alien, "every text has a label that the training text does not have"], "nmt-train",
            "--task", "classification", train, "--valid-sets", alien,
            "--model", os.path.join(folder, "alien.model"), "--after", "1u", *SMALL)

    # Training tells how many texts it crops, of both files.
    long_valid = file("long.valid", f"red\t{longest} da\nred\tX red\n")
    _, err = ok("nmt-train", "--task", "classification", train, "--valid-sets", long_valid,
                "--model", model + "4", "--after", "1u", *SMALL, "--max-length", "3")
    assert (f"warning: {long_valid}: cropped to 1000 tokens, as by nmt-classify: 1 of 2 texts"
            in err), err
    assert re.search(r"cropped to 3 pieces \(max-length\): [1-9][0-9,]* of [0-9,]+ training texts",
                     err), (err)

    # A vocabulary of pieces learns from the beginning of a text that is too long for it.
    large = lines((label, f"{text} " + "d\u00e4 " * 1400) for label, text in texts(rng, 40))
    ok("nmt-train", "--task", "classification", file("large", large),
       "--model", model + "5", "--after", "1u", *SMALL, "--vocab-type", "sentencepiece",
       "--dim-vocabs", "60")

    # A resumed training equals one without a break.
    whole, halves = os.path.join(folder, "whole"), os.path.join(folder, "halves")
    common = ["--task", "classification", train, *SMALL]
    ok("nmt-train", *common, "--model", whole, "--after", "2e")
    ok("nmt-train", *common, "--model", halves, "--after", "1e")
    ok("nmt-train", *common, "--model", halves, "--after", "2e")
    weights = [open(os.path.join(m, "latest", "model.safetensors"), "rb").read()
               for m in (whole, halves)]
    assert weights[0] == weights[1]

    # A resumed training refuses text with labels that the model does not have.
    new = file("new", open(train, encoding="utf-8").read().replace("red\t", "pink\t", 2))
    refused(3, [f"{new}: the model does not have the labels of 2 texts: pink (2)", "no-reload"],
            "nmt-train", *[new if argument == train else argument for argument in common],
            "--model", halves, "--after", "3e")

    # U+2581 in a label, which SentencePiece reads as a space.
    marked = [file(name, open(path, encoding="utf-8").read().replace("red\t", "\u2581re\u2581d\t"))
              for name, path in (("marked", train), ("marked.valid", valid))]
    marks = os.path.join(folder, "marks")
    _, err = ok("nmt-train", "--task", "classification", marked[0], "--valid-sets", marked[1],
                "--model", marks, "--after", "2e", *SMALL)
    assert "does not have" not in err, err
    out, _ = ok("nmt-classify", marks, stdin="".join(text + "\n" for _, text in held))
    assert "\u2581re\u2581d" in out.split() and "red" not in out.split(), out

    # Bad input: one line, nothing written.
    task = ["nmt-train", "--task", "classification", "--model", os.path.join(folder, "none")]
    refused(3, ["line 2 has 1 field, not 2"], *task, file("bad", "a\tx\nb\n"))
    refused(3, ["no labeled texts"], *task, file("empty", "\n"))
    refused(3, ["label 'a b' has a space"], *task, file("space", "a b\tx\nb\ty\n"))
    refused(3, ["pairs"], *task, train, "--valid-sets", os.path.join(folder, "pairs"))
    refused(3, ["at least two labels"], *task, file("one", "a\tx\na\ty\n"))
    refused(3, ["all texts left for training have the label a; give a development set with "
                "valid-sets"], *task, file("rest", "a\tx\nb\ty\n"))
    refused(2, ["missing"], *task, os.path.join(folder, "missing"))
    assert not os.path.exists(os.path.join(folder, "none"))
    refused(2, ["classifier", "tagger"], "nmt-tag", model, stdin="a\n")
    refused(2, ["exclude"], "nmt-classify", model, "--input", train, "--evaluate", valid)
print("passed")
