#!/usr/bin/env python3
"""nmt-bleu's command line: exit statuses, one line for every error, unusual text, --lineage.
Argument: the folder of the programs."""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.join(sys.argv[1], "nmt-bleu")


def run(*arguments, stdin=b""):
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def refused(status, parts, *arguments):
    code, out, err = run(*arguments)
    assert code == status and out == "" and err.count("\n") == 1, (arguments, code, out, err)
    for part in parts:
        assert part in err, (arguments, part, err)


def score(*arguments, **more):
    code, out, err = run(*arguments, "-b", "-w", "4", **more)
    assert code == 0, (arguments, code, err)
    return out.strip(), err


with tempfile.TemporaryDirectory() as folder:

    def file(name, content):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(content)
        return path

    text = "Das ist ein Haus.\nDie Straße ist länger als gedacht.\n".encode()
    ref = file("ref", text)
    hyp = file("hyp", b"Das ist das Haus.\nDie Stra\xc3\x9fe ist lang.\n")
    empty, short = file("empty", b""), file("short", b"Eins.\n")

    refused(2, ["--lowercase"], ref, "-i", hyp, "--lowrcase")
    refused(2, ["missing", "No such file"], ref, "-i", os.path.join(folder, "missing"))
    refused(2, [folder], folder, "-i", hyp)
    refused(3, [empty], ref, "-i", empty)
    refused(3, [empty], empty, "-i", hyp)
    refused(3, [short, ref, "1", "2"], ref, "-i", short)
    refused(2, ["13b", "intl"], ref, "-i", hyp, "--tokenize", "13b")
    refused(2, ["linear", "add-k"], ref, "-i", hyp, "-s", "linear")
    refused(2, ["meteor", "chrf"], ref, "-i", hyp, "-m", "meteor")
    refused(2, ["-w", "x"], ref, "-i", hyp, "-w", "x")
    refused(2, ["xml", "text"], ref, "-i", hyp, "-f", "xml")
    refused(2, ["smooth-value"], ref, "-i", hyp, "--smooth-value", "1")
    refused(2, ["two or more systems"], ref, "-i", hyp, "--paired-bs")

    # The scores alone of several systems: a line for each, a column for each metric.
    code, out, err = run(ref, "-i", hyp, ref, "-m", "bleu", "chrf", "-b", "-w", "3")
    alone = [run(ref, "-i", system, "-m", metric, "-b", "-w", "3")[1].strip()
             for system in (hyp, ref) for metric in ("bleu", "chrf")]
    assert (code == 0 and out == "{}\t{}\n{}\t{}\n".format(*alone)
            and alone[2:] == ["100.000"] * 2), (out, alone)
    refused(2, ["score-only"], ref, "-i", hyp, ref, "-b", "--paired-bs")
    refused(2, ["exclude"], ref, "-i", hyp, ref, "--paired-bs", "--paired-ar")
    refused(2, ["confidence-n", "1"], ref, "-i", hyp, "--confidence", "--confidence-n", "1")
    for metric, options in (("chrf", ["-lc"]), ("chrf", ["-tok", "intl"]), ("ter", ["-s", "floor"]),
                            ("bleu", ["-cw", "2"]),
                            ("rouge", ["--chrf-lowercase"]), ("bleu", ["--confidence-n", "9"]),
                            ("bleu", ["--seed", "9"]),
                            ("bleu", ["--paired-bs-n", "9"]), ("chrf", ["--paired-ar-n", "9"]),
                            ("chrf", ["--force"])):
        refused(2, ["options without effect: "], ref, "-i", hyp, "-m", metric, *options)
    refused(2, ["lowercase (metrics has no bleu)"], ref, "-i", hyp, "-m", "chrf", "-lc")
    score(ref, "-i", hyp, "-m", "chrf", "--no-lowercase", "-tok", "13a")  # the defaults
    settings = file("c.yml", b"lowercase: true\n")
    assert f"without effect: {settings}:1: lowercase" in score(ref, "-i", hyp, "-m", "chrf",
                                                               "-c", settings)[1]
    refused(2, ["twice"], ref, "-i", hyp, hyp)
    with open(hyp, "rb") as stream:
        same = file("same", stream.read())
    shouted = file("shouted", text.replace(b"Das", b"DAS"))
    for kind in ("bs", "ar"):
        code, out, err = run(ref, "-i", hyp, same, f"--paired-{kind}", "-f", "text")
        assert (code == 0
                and "same: BLEU equals the baseline in every line: its p-value is not meaningful"
                in err and "*" not in out.split("\n\n")[0]), (out, err)
        # Outputs that differ only in what the metric ignores.
        code, out, err = run(ref, "-i", ref, shouted, "-lc", f"--paired-{kind}", "-f", "text")
        assert (code == 0 and "shouted: BLEU equals the baseline in every line" in err
                and "*" not in out.split("\n\n")[0]), (out, err)
        assert "equals the baseline" not in run(ref, "-i", ref, shouted, "-m", "chrf",
                                                f"--paired-{kind}")[2]
    refused(2, ["reference"], "-i", hyp)
    refused(3, ["line 1 has 1 field,"], ref, "-i", hyp, "--num-refs", "2")
    refused(3, ["line 1 has 1 field, expected 2 (trailing tabs do not count)"],
            file("tabs", text.replace(b"\n", b"\t\n")), "-i", hyp, "--num-refs", "2")

    # Edit distances need memory for a band around the diagonal, not for all pairs of words.
    long = file("long", b"w " * 100_000 + b"\n")
    assert score(long, "-i", long, "-m", "ter", "-b")[0].strip() == "0.0000"

    # Standard input, underscores for dashes, adjacent values.
    plain = score(ref, "-i", hyp)[0]
    assert score(ref, stdin=open(hyp, "rb").read())[0] == plain
    assert score(ref, "-i", "-", stdin=open(hyp, "rb").read())[0] == plain
    assert score(ref, "--input=" + hyp, "--smooth_method=exp", "-tok", "13a")[0] == plain
    # Two references in one file are those of two files.
    assert score(file("both", b"Das ist ein Haus.\tDas ist das Haus.\n"
                              b"Die Stra\xc3\x9fe ist lang.\tEgal.\n"), "-i", hyp,
                 "-nr", "2")[0] == "100.0000"

    # Byte order mark and CRLF are no part of the text; invalid UTF-8 is told once; the last
    # line needs no LF.
    code, err = score(ref, "-i", file("crlf", b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")))
    assert (code == "100.0000" and err.count("\n") >= 1
            and "byte order mark" in err.lower()), (code, err)
    assert score(ref, "-i", file("no_lf", text[:-1]))[0] == "100.0000"
    figure, err = score(ref, "-i", file("bad", b"\xff\xfd Haus\n\xc3\n"))
    assert "UTF-8" in err, err
    assert score(ref, "-i", file("bad2", b"\xff\n\xc3\n"), "-q")[1] == ""
    # Text without words is told; the score stays sacreBLEU's.
    blank = file("blank", b"\n \t\n")
    for files, told in (((ref, blank), [blank]), ((blank, hyp), [blank]),
                        ((blank, blank + "2"), [blank, blank + "2"])):
        file("blank2", b" \n\n")
        figure, err = score(files[0], "-i", files[1])
        assert (figure == "0.0000"
                and err.count("no line has text") == len(told)), (files, figure, err)
        assert all(f"warning: {name}: no line has text" in err for name in told), (told, err)
    assert "no line has text" not in score(file("half", b"Haus\n\n"), "-i", hyp)[1]
    # Only LF ends a line.
    separators = file("separators", "a b c d\u2028e\x85f\r g\nzwei\n".encode())
    assert score(separators, "-i", separators)[0] == "100.0000"

    # The four definitions, each with its signature.
    code, out, err = run(ref, "-i", hyp, "--lineage", "-f", "json")
    rows = json.loads(out)
    assert code == 0 and [(r["case"], r["tok"], r["smooth"])
                          for r in rows] == [("mixed", "13a", "exp"), ("lc", "13a", "exp"),
                                             ("lc", "intl", "exp"),
                                             ("mixed", "multi-bleu", "none")], (out)
    assert "does not look tokenized" in err, err
    assert len(run(ref, "-i", hyp, "--lineage", "-b", "-f", "text")[1].split()) == 4

    # BLEU is told of text that looks tokenized, once.
    spaced = file("spaced", b"so ist es .\n" * 100)
    assert ("tokenized" in score(spaced, "-i", spaced)[1]
            and score(spaced, "-i", spaced, "--force")[1] == "")

    assert score(spaced, "-i", spaced, "-m", "chrf")[1] == ""
    code, out, err = run("--help")
    assert (code == 0 and err == ""
            and all(o in out for o in ("--paired-bs", "--tokenize", "13a", "-lc"))), out
    code, out, err = run("--version")
    assert code == 0 and out.startswith("nmt-bleu ")
    full = subprocess.run(f"'{PROGRAM}' '{ref}' -i '{hyp}' > /dev/full", shell=True,
                          capture_output=True)
    assert full.returncode == 1 and full.stderr.count(b"\n") == 1, full
print("passed")
