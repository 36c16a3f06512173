#!/usr/bin/env python3
"""Checks that architectures are rows of a table: no production file but
src/config/enums/architectures.def names one, docs/reference/models.md has a section for each, and
settings are compared as enumerations, never as words. Usage: check_architectures.py [SOURCE_DIR];
exits 1 and names each violation."""
import pathlib
import re
import sys

import files

TABLE = "src/config/enums/architectures.def"
PAGE = "docs/reference/models.md"
PRODUCTION = ("src/", "include/", "cuda/", "tools/")
# The benchmark times the models of three papers and has to say which; the default student has
# another architecture than the default model.
NAMES_MODELS = ("src/app/benchmark/", "src/app/distill/student_defaults.cpp")
# Rooms below the application floor: they see specs with enumerations.
SETTINGS = ("src/model/", "src/nn/", "src/train/", "src/search/", "src/autograd/")
# Texts that are no settings: parts of an inventory, and changed settings as the user wrote them.
TEXTS = re.compile(r"\b(part\.name|change\.(name|now|before)|momentum)\s*[!=]=")
COMPARED = re.compile(r'[\w.)\]]+\s*[!=]=\s*"[^"]*"')


def code_of(text, name):
    """The code without comments; a .def table has no names in comments either."""
    return re.sub(r"//[^\n]*", "", text) if files.suffix(name) in files.CODE else text


def named_in(text, word):
    """Whether a text names an architecture."""
    if re.search(rf'"{word}"|ModelType::{word}\b', text):
        return True
    # "deep" and "block" are plain English, and gnmt is a length penalty too.
    return word not in {"deep", "block", "gnmt"} and re.search(rf"\b{word}\b", text) is not None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    names = re.findall(r"^NMT_ARCHITECTURE\((\w+)", files.text_of(root, TABLE), re.M)
    sections = set(re.findall(r"^## (\S+)$", files.text_of(root, PAGE), re.M))
    broken = [f"{PAGE}: no section '## {name}'" for name in names if name not in sections]
    seen = 0
    for name in files.project_files(root):
        if (not name.startswith(PRODUCTION)
            or files.suffix(name) not in files.CODE | {".def", ".py"}):
            continue
        text = files.text_of(root, name)
        seen += 1
        if name != TABLE and not name.startswith(NAMES_MODELS):
            broken += [f"{name}: names the architecture {word}, which belongs in {TABLE}"
                       for word in names if named_in(text, word)]
        if name.startswith(SETTINGS):
            broken += [f"{name}: compares with a word: {found.group(0)}"
                       for found in COMPARED.finditer(code_of(text, name))
                       if not TEXTS.search(found.group(0))]
    print("\n".join(broken) or f"{len(names)} architectures are named in their table alone; "
          f"{seen} files")
    return 1 if broken or not names or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
