#!/usr/bin/env python3
"""Which programs take models of which tasks: the table of docs/reference/model-directory.md against
the programs, with a small model of each task. Argument: the folder of the programs."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAMS = sys.argv[1]
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/model-directory.md"
TASKS = {"translation": "a translation model", "language model": "a language model",
         "tagger": "a tagger", "classifier": "a classifier"}


def run(program, *arguments, stdin=""):
    done = subprocess.run([os.path.join(PROGRAMS, program), *arguments], input=stdin.encode(),
                          capture_output=True, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def table():
    rows = [re.split(r" *\| *", line.strip("| \n"))
            for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    head = next(row for row in rows if row[0] == "program")
    assert head[1:] == list(TASKS), head
    return {row[0].strip("`"): dict(zip(TASKS, row[1:]))
            for row in rows if row[0].startswith("`nmt-")}


with tempfile.TemporaryDirectory() as folder:

    def file(name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    words = ["red", "blue", "green", "old", "new", "house", "river", "dog"]
    lines = [f"{a} {b} {words[(i + k) % 8]}" for i, a in enumerate(words)
             for k, b in enumerate(words)]
    source, target = (file("text.en", "\n".join(lines) + "\n"),
                      file("text.de", "\n".join(line[::-1] for line in lines) + "\n"))
    columns = file("columns", "\n\n".join("\n".join(f"{word} {word[0]}" for word in line.split())
                                          for line in lines) + "\n")
    labeled = file("labeled", "".join(f"{line[0]}\t{line}\n" for line in lines))
    small = ["--dim-emb", "8", "--dim-rnn", "8", "--unit", "lrn", "--after", "2u",
             "--save-freq", "1u", "--threads", "1", "--valid-freq", "2u", "--quiet"]
    data = {"translation": [source, target, "--dim-vocabs", "60", "--valid-lines", "4",
                            "--enc-depth", "1", "--dec-depth", "1"],
            "language model": ["--task", "language-model", source, "--valid-sets", source,
                               "--dim-vocabs", "40", "--dec-depth", "1"],
            "tagger": ["--task", "tagging", columns],
            "classifier": ["--task", "classification", labeled, "--dim-vocabs", "40"]}
    models = {task: os.path.join(folder, task.replace(" ", "-")) for task in TASKS}
    for task, model in models.items():
        code, _, err = run("nmt-train", *data[task], "--model", model, *small)
        assert code == 0, (task, err)

    def arguments(program, task):
        """A use that succeeds if the program takes the model, the output and the input."""
        model, new = models[task], os.path.join(folder, f"{program} {task}")
        return {"nmt-score": [model, source] if task == "language model"
                else [model, source, target],
                "nmt-convert": [model, new, "--no-check"],
                "nmt-average": [model, new, "--last", "1"],
                "nmt-distill": ["--teacher", model, "--output", new, "--train-sets", source,
                                "--valid-sets", source, target, "--dry-run"],
                "nmt-serve": ["en-de=" + model, "--port", "0"]}.get(program, [model])

    def answer(program, task):
        command, text = arguments(program, task), "\n".join(lines[:2]) + "\n"
        if program != "nmt-serve":
            return run(program, *command, stdin=text)
        server = subprocess.Popen([os.path.join(PROGRAMS, program), *command],
                                  stderr=subprocess.PIPE, text=True)
        err = ""
        for line in server.stderr:
            err += line
            if "listening on" in line:
                server.terminate()
        return server.wait(timeout=60), "", err

    found = table()
    built = {path.name for path in pathlib.Path(PROGRAMS).glob("nmt-*")}
    assert set(found) | {"nmt-train", "nmt-bench", "nmt-bleu",
                         "nmt-vocab"} >= built, (built - set(found))
    for program, row in found.items():
        if program not in built:
            continue  # nmt-serve, in a build without its libraries
        for task, takes in row.items():
            assert takes in ("yes", "no", "`--lm`"), (program, takes)
            code, out, err = answer(program, task)
            if takes == "yes":
                assert code == 0, (program, task, code, err)
            else:
                errors = [line for line in err.splitlines() if line.startswith("error: ")]
                assert code == 2 and out == "" and len(errors) == 1, (program, task, code, out, err)
                expected = " or ".join(TASKS[other]
                                       for other, taken in row.items() if taken == "yes")
                assert (f"{models[task]} is {TASKS[task]}; expected {expected}"
                        in errors[0]), (program, task, errors)
    code, out, err = run("nmt-translate", models["translation"], "--lm", models["tagger"],
                         stdin="a\n")
    assert code == 2 and f"is a tagger; expected a language model" in err, (code, err)
    for program in ("nmt-report", "nmt-convert"):
        assert "translation or language model" in run(program,
                                                      "--help")[1].replace("\n", " "), (program)

    # An output is neither an input nor a file of the model, and a file beside the model does not
    # stop its training.
    text = file("read.txt", "\n".join(lines) + "\n")
    translation, text_model, tagger, classifier = models.values()
    jobs = [["nmt-translate", "-m", translation, "-i", text, "-o"],
            ["nmt-explain", "-m", translation, "-i", text, "-o"],
            ["nmt-explain", "-m", translation, "-i", text, "-o", os.path.join(folder, "page.html"),
             "--json"],
            ["nmt-score", translation, text, target, "-o"],
            ["nmt-score", translation, source, text, "-o"], ["nmt-score", text_model, text, "-o"],
            ["nmt-tag", tagger, "-i", text, "-o"], ["nmt-tag", tagger, "--evaluate", text, "-o"],
            ["nmt-classify", classifier, "-i", text, "-o"],
            ["nmt-classify", classifier, "--evaluate", text, "-o"]]
    vocabulary = next(str(path) for path in pathlib.Path(translation).glob("*.spm"))
    inspect = ["nmt-vocab", "inspect", vocabulary, "--encode", "-i", text, "-o"]

    def bytes_of(path):
        with open(path, "rb") as f:
            return f.read()

    def refused(job, output, words):
        before = bytes_of(output)
        code, _, err = run(*job, output)
        assert (code == 2 and output in err and words in err
                and err.count("\n") == 1), (job, output, code, err)
        assert bytes_of(output) == before, (job, output)

    for job in [*jobs, inspect]:
        refused(job, text, "is the input; name another file")
    refused(inspect, vocabulary, "is the input; name another file")
    for job in [job for job in [*jobs, inspect] if job[-1] == "-o"]:  # appended to the input
        before = bytes_of(text)
        with open(text, "ab") as end:
            done = subprocess.run([os.path.join(PROGRAMS, job[0]), *job[1:-1]], stdout=end,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        assert (done.returncode == 2 and b"output: standard output is the input; name another file"
                in done.stderr and bytes_of(text) == before), (job, done)
    for job in jobs:
        model = next(part for part in job if part in models.values())
        refused(job, os.path.join(model, "config.json"), f"is a file of the model {model}")
    code, _, err = run("nmt-convert", translation, os.path.join(translation, "checkpoints/int8"),
                       "--no-check")
    assert code == 2 and "is a file of the model" in err, err
    for command in (["nmt-report", translation, "-o", os.path.join(translation, "report.html")],
                    ["nmt-convert", translation, os.path.join(translation, "int8"), "--no-check"]):
        code, _, err = run(*command)
        assert code == 0, err
    again = ["nmt-train", *data["translation"], "--model", translation, *small]
    code, _, err = run(*again, "--after", "3u")
    assert code == 0, err
    code, _, err = run(*again, "--no-reload")
    assert code == 2 and "contains other files" in err, err
print("passed")
