#!/usr/bin/env python3
"""nmt-train --task tagging and nmt-tag on generated columns: what the networks can learn, bad
input, resumed training. Argument: the folder of the programs."""
import os
import random
import subprocess
import sys
import tempfile

PROGRAMS = sys.argv[1]
SMALL = ["--dim-emb", "16", "--dim-rnn", "24", "--dim-char-emb", "8", "--dim-char-rnn", "8",
         "--threads", "1",
         "--mini-batch-words", "128", "--learn-rate", "0.01", "--dropout", "0", "--quiet"]


def run(program, *arguments, stdin="", quiet=True):
    done = subprocess.run([os.path.join(PROGRAMS, program), *arguments], input=stdin.encode(),
                          capture_output=True, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ok(program, *arguments, **more):
    code, out, err = run(program, *arguments, **more)
    assert code == 0, (program, arguments, code, err)
    return out, err


def refused(status, parts, program, *arguments, **more):
    code, out, err = run(program, *arguments, **more)
    assert (code == status and out == ""
            and len([l for l in err.splitlines() if l.startswith("error")]) == 1), (arguments,
                                                                                    code, out, err)
    for part in parts:
        assert part in err, (arguments, part, err)


def sentences(rng, count):
    """A word ending in -a is A before a number and B elsewhere; numbers are N and unknown words
    show their kind by their ending alone: the tags need later words and characters."""
    out = []
    for _ in range(count):
        words = []
        for _ in range(rng.randint(1, 9)):
            stem = "".join(rng.choice("bcdfg") for _ in range(3))
            words.append(rng.choice((stem + "a", stem + "o", str(rng.randint(0, 99)))))
        tags = []
        for i, word in enumerate(words):
            before_number = i + 1 < len(words) and words[i + 1].isdigit()
            tags.append("N" if word.isdigit() else "O" if word.endswith("o")
                        else "A" if before_number else "B")
        out.append(list(zip(words, tags)))
    return out


def columns(data):
    return "".join("".join(f"{word} x {tag}\n" for word, tag in sentence) + "\n"
                   for sentence in data)


def conllu(data):
    text = ""
    for sentence in data:
        text += "# text = " + " ".join(word for word, _ in sentence) + "\n"
        for i, (word, tag) in enumerate(sentence, 1):
            text += f"{i}\t{word}\t_\t{tag}\t_\t_\t0\t_\t_\t_\n"
        text += "\n"
    return text


with tempfile.TemporaryDirectory() as folder:

    def file(name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        return path

    rng = random.Random(5)
    data, held = sentences(rng, 400), sentences(rng, 60)
    train, valid = file("train.txt", columns(data)), file("valid.conllu", conllu(held))
    text = "".join(" ".join(word for word, _ in s) + "\n" for s in held)
    model = os.path.join(folder, "model")
    score = lambda where: float(ok("nmt-tag", where, "--evaluate", valid,
                                   "--threads", "1")[0].split()[1])

    # Both directions and characters: nearly all tags; the validation prints what nmt-tag does.
    _, log = ok("nmt-train", "--task", "tagging", train, "--valid-sets", valid, "--model", model,
                "--unit", "lstm", "--after", "8e", *[a for a in SMALL if a != "--quiet"])
    assert score(model) > 97, log
    assert f"accuracy {score(model):.2f} ±" in log, log
    out, _ = ok("nmt-tag", model, stdin=text)
    tags = [line.split(" ") for line in out.splitlines()]
    correct = sum(t == e for line, s in zip(tags, held, strict=True)
                  for t, (_, e) in zip(line, s, strict=True))
    assert abs(100 * correct / sum(map(len, held)) - score(model)) < 0.006, (correct, score(model))
    # n lines in, n lines out, for unusual lines too.
    odd = "bca 1\n\n  bca\t1 \r\n\ufeffx\x00y \u2028\nlast"
    lines = ok("nmt-tag", model, stdin=odd)[0].split("\n")
    assert [len(line.split()) for line in lines] == [2, 0, 2, 2, 1, 0], lines
    assert lines[0] == lines[2], lines
    many = "bca " * 2500
    assert len(ok("nmt-tag", model, stdin=many)[0].split()) == 2500

    # A tag that the model does not have is an error, and told once.
    other = file("other.conllu",
                 conllu([[(word, "X" if tag == "N" else tag) for word, tag in s] for s in held]))
    out, err = ok("nmt-tag", model, "--evaluate", other, "--threads", "1")
    right = sum(t == e for line, s in zip(tags, held) for t, (_, e) in zip(line, s) if e != "N")
    numbers = sum(tag == "N" for s in held for _, tag in s)
    assert f"({right} of {sum(map(len, held))})" in out, (out, right)
    told = (f"warning: {other}: the model does not have the labels of {numbers} words, "
            f"which count as errors: X ({numbers})\n")
    assert err.count("does not have the labels") == 1 and told in err, (err, told)
    assert "does not have the labels" not in ok("nmt-tag", model, "--evaluate", valid)[1]

    # Without a sentence of known tags there is no cross-entropy, which would look like a
    # perfect one.
    alien = file("alien.conllu", conllu([[(word, "X") for word, _ in s] for s in held]))
    refused(3, [alien, "every sentence has a label that the training text does not have"],
            "nmt-train", "--task", "tagging", train, "--valid-sets", alien,
            "--model", os.path.join(folder, "alien.model"), "--after", "1u", *SMALL)

    # A forward network cannot know the next word; words alone do not tell the kind of unknown ones.
    basic, alone = os.path.join(folder, "basic"), os.path.join(folder, "alone")
    ok("nmt-train", "--task", "tagging", train, "--valid-sets", valid, "--model", basic,
       "--after", "4e", "--tagging-network", "basic", *SMALL)
    ok("nmt-train", "--task", "tagging", train, "--valid-sets", valid, "--model", alone,
       "--after", "4e", "--dim-char-rnn", "0",
       *[a for i, a in enumerate(SMALL) if not (SMALL[max(i - 1, 0)] + a).count("--dim-char-")])
    assert score(basic) < 95 and score(alone) < score(model) - 1, (score(basic), score(alone))

    # Span tags give span F1; dependent network with a CRF; a resumed training equals one
    # without a break.
    iob = lambda s: [(w, {"N": "O", "O": "B-o", "A": "B-a", "B": "I-a"}[t]) for w, t in s]
    spans = file("spans", columns(map(iob, data))), file("spans.valid", columns(map(iob, held)))
    common = ["--task", "tagging", spans[0], "--valid-sets", spans[1],
              "--tagging-network", "dependent", "--crf",
              "--unit", "lrn", *[a for a in SMALL if a != "--quiet"]]
    whole, halves = os.path.join(folder, "whole"), os.path.join(folder, "halves")
    _, log = ok("nmt-train", *common, "--model", whole, "--after", "2e")
    assert "span F1" in log, log
    ok("nmt-train", *common, "--model", halves, "--after", "1e")
    ok("nmt-train", *common, "--model", halves, "--after", "2e")
    # Another limit of the length is another batching, and completed epochs count.
    for more in (("--max-length", "5"), ("--max-length", "5", "--max-length-crop")):
        _, log = ok("nmt-train", *[a for a in common if a != "--quiet"], "--model", halves,
                    "--after", "2e", *more)
        assert ("already finished" in log and "the batching differs" in log
                and "not the checkpoint's" not in log), log
    weights = [open(os.path.join(m, "latest", "model.safetensors"), "rb").read()
               for m in (whole, halves)]
    assert weights[0] == weights[1]
    assert ok("nmt-tag", whole, "--evaluate", spans[1])[0].startswith("span F1 ")
    # Spans of another scheme can be right, spans of another type cannot.
    out, err = ok("nmt-tag", whole,
                  "--evaluate", file("spans.bilou", open(spans[1]).read().replace("B-o", "S-o")))
    assert out.startswith("span F1 ") and "does not have" not in err, err
    out, err = ok("nmt-tag", whole,
                  "--evaluate", file("spans.type", open(spans[1]).read().replace("B-o", "B-q")))
    assert "words, which count as errors: B-q (" in err, err
    typed = [os.path.join(folder, "spans.type") if argument == spans[1] else argument
             for argument in common]
    _, err = ok("nmt-train", *typed, "--model", os.path.join(folder, "typed"), "--after", "1u")
    assert err.count("which count as errors: B-q (") == 1, err

    # A resumed training refuses text with tags that the model does not have, also a known type of
    # another scheme.
    for tag in ("B-q", "S-o"):
        new = file("spans.new", open(spans[0]).read().replace("B-o", tag, 3))
        refused(3,
                [f"{new}: the model does not have the labels of 3 words: {tag} (3)", "no-reload"],
                "nmt-train", *[new if argument == spans[0] else argument for argument in common],
                "--model", halves, "--after", "3e")

    # U+2581 in a tag, which SentencePiece reads as a space.
    marked = [file(name, columns([[(w, {"N": "\u2581N", "O": "O\u2581"}.get(t, t)) for w, t in s]
                                  for s in part]))
              for name, part in (("marked", data), ("marked.valid", held))]
    marks = os.path.join(folder, "marks")
    _, err = ok("nmt-train", "--task", "tagging", marked[0], "--valid-sets", marked[1],
                "--model", marks, "--after", "3e", *SMALL)
    assert "does not have" not in err, err
    assert ({"\u2581N", "O\u2581"} < set(ok("nmt-tag", marks, stdin=text)[0].split())
            <= {"\u2581N", "O\u2581", "A", "B"})

    # Held-out sentences, where no development set is given.
    _, log = ok("nmt-train", "--task", "tagging", train, "--model", os.path.join(folder, "held"),
                "--after", "2u", *[a for a in SMALL if a != "--quiet"])
    assert "valid-lines: 20" in log, log

    # Bad input: one line, nothing written.
    task = ["nmt-train", "--task", "tagging", "--model", os.path.join(folder, "none")]
    refused(3, ["line 2 has 1 columns, not 2"], *task, file("bad", "a X\nb\n"))
    refused(3, ["no words"], *task, file("empty", ""))
    refused(3, ["column 9"], *task, train, "--tag-column", "9")
    refused(3, ["at least two tags"], *task, file("one", "a X\nb X\n\nc X\n"))
    refused(3, ["all words left for training have the tag X; give a development set with "
                "valid-sets"], *task, file("rest", "a X\nb X\n\nc Y\n"))
    refused(2, ["missing"], *task, os.path.join(folder, "missing"))
    refused(2, ["2 files", "a tagger"], *task, "--train-sets", train, valid)
    refused(2, ["label-smoothing"], *task, train, "--crf", "--label-smoothing", "0.1")
    refused(2, ["dependent"], *task, train, "--tagging-network", "both")
    assert not os.path.exists(os.path.join(folder, "none"))
    refused(2, ["tagger", "translation"], "nmt-translate", "--model", model, stdin="a\n")
    refused(2, ["model"], "nmt-tag", stdin="a\n")
    refused(2, ["exclude"], "nmt-tag", model, "--input", train, "--evaluate", valid)
    refused(3, ["line 1"], "nmt-tag", model, "--evaluate", file("text", "one\n"))
print("passed")
