#!/usr/bin/env python3
"""Checks the shape and the spelling of the source tree: no folder holds more than 25 files, no
image more than 100 KB, texts use American spelling, and Python's source archive lacks no source.

    check_tree.py [SOURCE_DIR]

Exit status 1 and a line for every exception."""
import collections
import pathlib
import re
import sys

from files import GOLDEN, IMAGES, project_files, suffix, text_of

MAX_FILES = 25
MAX_IMAGE_BYTES = 100_000
# Beginnings and parts of words in British spelling.
BRITISH = re.compile(
    r"\b(?:(?:re|un|de|non|mis|pre)?(?:"
    r"(?:optim|minim|maxim|initial|normal|general|special|regular|parallel|serial|vector|factor|"
    r"organ|recogn|summar|synchron|util|token|quant|penal|visual|final|randomi?|categor|character|"
    r"discret|linear|memor|priorit|real|standard|symbol|capital|lemmat|material|itemi?|modul|"
    r"emphas|local|neutral)is(?:e[ds]?|er|ers|ing|able|ation|ations|ational)"
    r"|analys(?:e[ds]?|ing)|paralys\w+"
    r"|behaviours?\w*|neighbour\w*|colour\w*|favour\w*|honour\w*|flavour\w*|labour\w*|humour"
    r"|cent(?:re|red|res)|metres|fibres?|lit(?:re|res)"
    r"|label(?:led|ling)|model(?:led|ling)|cancel(?:led|ling)|travel(?:led|ling|ler)"
    r"|level(?:led|ling)|signal(?:led|ling)|channel(?:led|ling)|fuel(?:led|ling)"
    r"|catalogues?|dialogues?|grey|licence\w*|defence|offence|judgement|artefacts?|fulfil|"
    r"programmes?|whilst|amongst|learnt|spelt|ageing|sceptical|acknowledgement"
    r"))\b", re.I)
# Data, and the list above.
SPELLING_EXEMPT = {"scripts/data/make_toy_corpus.py", "tests/tree/check_tree.py"}
NO_TEXT = IMAGES | {".spm", ".xz", ".safetensors"}


def folder_errors(names):
    folders = collections.Counter(str(pathlib.PurePosixPath(name).parent) for name in names)
    return [f"{folder}: {count} files, more than {MAX_FILES}"
            for folder, count in sorted(folders.items()) if count > MAX_FILES]


def image_errors(root, names):
    for name in names:
        size = (root / name).stat().st_size
        if suffix(name) in IMAGES and size > MAX_IMAGE_BYTES:
            yield f"{name}: {size} bytes, more than {MAX_IMAGE_BYTES}"


def spelling_errors(root, names):
    for name in names:
        if name.startswith(GOLDEN) or name in SPELLING_EXEMPT or suffix(name) in NO_TEXT:
            continue
        for number, line in enumerate((text_of(root, name) or "").splitlines(), 1):
            for word in BRITISH.findall(line.replace("_", " ")):
                yield f"{name}:{number}: '{word}' is British spelling"


def archive_errors(root):
    # As in .gitignore, a pattern without a slash at its begin leaves out files of all folders.
    excluded = re.search(r"^sdist\.exclude = \[(.*)\]$",
                         (root / "pyproject.toml").read_text(), re.M)[1]
    for pattern in re.findall(r'"([^"]*)"', excluded):
        if not pattern.startswith("/"):
            yield f"pyproject.toml: sdist.exclude: {pattern} begins without /"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    names = project_files(root)
    errors = [*folder_errors(names), *image_errors(root, names), *spelling_errors(root, names),
              *archive_errors(root)]
    print("\n".join(errors) or f"{len(names)} files")
    return 1 if errors or not names else 0


if __name__ == "__main__":
    sys.exit(main())
