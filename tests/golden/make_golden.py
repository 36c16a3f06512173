#!/usr/bin/env python3
"""Trains the golden models with the programs of a release and records what they compute.

    make_golden.py BIN_DIR tests/golden/VERSION

Run it once per release, with a release build of that version for all instruction sets. golden.py
lists the models of VERSION. The folder must not exist. make_toy_corpus.py of this tree writes the
corpus, which is stored with the models."""
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap

import golden

ROOT = pathlib.Path(__file__).resolve().parents[2]


def store(model, target):
    """Copies a model directory without its vocabulary; returns its links."""
    links = {path.name: str(path.readlink()) for path in model.iterdir() if path.is_symlink()}
    used = {pathlib.Path(path).name for path in links.values()}
    for path in sorted(model.rglob("*")):
        inside = path.relative_to(model)
        if path.is_symlink() or not path.is_file() or inside.name in ("vocab.spm", "train.jsonl"):
            continue
        if inside.parts[0] == "checkpoints" and inside.parts[1] not in used:
            continue
        (target / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / inside)
    return links


def expectations(folder, out, scratch, release):
    """What the programs compute with the stored models at every level of the instruction set."""
    expected = {"translations": {}, "int8": {}, "scores": {}, "resumed": {}}
    for level in golden.installed_levels(folder):
        programs = golden.Programs(folder, level)
        for name in [*release.models, *release.converted]:
            model = golden.unpack(out, name, scratch / f"{name}.{level}")
            translations = golden.translate(programs, out, model).splitlines()
            if expected["translations"].setdefault(name, translations) != translations:
                sys.exit(f"{name}: the levels translate differently: choose another model")
            int8 = golden.translate_int8(programs, out, model)
            if expected["int8"].setdefault(name, int8) != int8:
                sys.exit(f"{name}: the levels translate differently in int8")
            scores = golden.score(programs, out, model)
            if name in release.resumed:
                got, sums = golden.resume(programs, out, model, release.models[name])
                if got != level:
                    sys.exit(f"the loader took {got} in place of {level}")
                expected["resumed"].setdefault(name, {})[got] = sums
            expected["scores"].setdefault(name, {})[level] = scores
    return expected


def pretty(value, indent=0, width=100):
    """JSON of lines of at most about `width` columns."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + len(line) <= width or not isinstance(value, (dict, list)):
        return line
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        items = [json.dumps(key) + ": " + pretty(item, indent + 1) for key, item in value.items()]
        return "{\n" + ",\n".join(pad + item for item in items) + "\n" + pad[:-1] + "}"
    if all(isinstance(item, (int, float)) for item in value):
        body = textwrap.fill(line[1:-1], width, initial_indent=pad, subsequent_indent=pad)
    else:
        body = ",\n".join(pad + pretty(item, indent + 1) for item in value)
    return "[\n" + body + "\n" + pad[:-1] + "]"


def main():
    folder, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    release = golden.RELEASES[out.name]
    out.mkdir(parents=True)
    programs = golden.Programs(folder)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "48",
                        "--valid", "8", "--test", "8", "--seed", "7", scratch], check=True)
        for side in ("en", "de"):
            shutil.copyfile(scratch / f"train.{side}", out / f"train.{side}")
        lines = (out / "train.en").read_bytes() + (scratch / "test.en").read_bytes()
        (out / "source.en").write_bytes(lines)
        links = {}
        os.chdir(scratch)  # relative names: the stored settings name no path of this machine
        for model, options in release.models.items():
            golden.train(programs, pathlib.Path(), model,
                         [*options, "--after", f"{golden.UPDATES}u"])
            links[model] = store(scratch / model, out / model)
            if model not in release.resumed:
                for path in (out / model).rglob("state.safetensors"):
                    path.unlink()
        for model, (source, precision) in release.converted.items():
            programs.run("nmt-convert", scratch / source, scratch / model, "--precision",
                         precision, "--no-check")
            links[model] = store(scratch / model, out / model)
        vocabularies = {(scratch / model / "vocab.spm").read_bytes() for model in links}
        if len(vocabularies) != 1:
            sys.exit("the models have different vocabularies")
        (out / "vocab.spm.xz").write_bytes(lzma.compress(vocabularies.pop(), preset=9))
        version = programs.run("nmt-train", "--version").stdout.decode().strip()
        (out / "expected.json").write_text(json.dumps({"links": links}))
        expected = {"program": version, "compiler": programs.build_info("compiler"),
                    "rounding": golden.ROUNDING, "links": links,
                    **expectations(folder, out, scratch, release)}
    (out / "expected.json").write_text(pretty(expected) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
