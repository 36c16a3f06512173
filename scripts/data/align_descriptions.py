#!/usr/bin/env python3
"""Extracts English-German sentence pairs from package descriptions in a directory of apt lists
(*_Translation-en*, *_Translation-de*). Descriptions are matched by Description-md5 and split into
paragraphs and list items, then into sentences, as far as the numbers on both sides agree. Writes
train, valid and test, each .en and .de, to FOLDER. The name of a package determines its split; no
sentence of valid or test is in train. With --documents, each description is a document: its pairs
in order, also those that others have, and an empty line on both sides."""
import argparse
import hashlib
import os
import re
import subprocess
import sys

TEST, VALID, SHARES = 2, 2, 100  # percent of the packages
MOST_WORDS = 80
ITEM = re.compile(r"\s*[*+•o–-]\s+")
# A sentence ends at . ! or ? before white space and a capital, digit or quotation mark, except
# after an abbreviation.
BOUNDARY = re.compile(r"(?<=[.!?])\s+(?=[\"'(„»“]?[A-ZÄÖÜ0-9])")
ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|[ez]\.\s?[Bg]|[iu]\.\s?[eA]|d\.\s?h|"
    r"etc|usw|bzw|ca|vs|cf|vgl|Dr|Mr|Mrs|St|Nr|No|inkl|evtl|ggf|bspw|Abk)\.$")


def read(path, program="get_data"):
    """The text of a list, with any of apt's compressions."""
    if path.endswith(("-en", "-de")):
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    try:
        helper = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", path], capture_output=True)
    except OSError as error:
        sys.exit(f"{program}: {path}: {error.filename}: {error.strerror}")
    if helper.returncode != 0:
        said = helper.stderr.decode(errors="replace").strip().splitlines()
        sys.exit(f"{program}: {path}: {said[0] if said else 'apt-helper failed'}")
    return helper.stdout.decode("utf-8", "replace")


def descriptions(lists, language):
    """md5 -> (package, synopsis, lines of the long description), from all lists in the
    directory."""
    found = {}
    for name in sorted(os.listdir(lists)):
        if not re.search(rf"_Translation-{language}(\.\w+)?$", name):
            continue
        for stanza in read(os.path.join(lists, name)).split("\n\n"):
            fields, body, synopsis = {}, [], None
            for line in stanza.split("\n"):
                if line.startswith(" "):
                    body.append(line[1:])
                elif ": " in line:
                    key, value = line.split(": ", 1)
                    fields[key] = value
                    if key == "Description-" + language:
                        synopsis, body = value, []
            if synopsis is not None and "Package" in fields and "Description-md5" in fields:
                found.setdefault(fields["Description-md5"], (fields["Package"], synopsis, body))
    return found


def units(body):
    """Paragraphs, each a list of texts: the paragraph, or its list items."""
    paragraphs, current = [], []
    for line in body + ["."]:
        if line.strip() == ".":
            if current:
                paragraphs.append(current)
            current = []
        elif ITEM.match(line):
            current.append(ITEM.sub("", line, count=1).strip())
        elif line.startswith(" ") and not current:
            current.append(line.strip())
        elif current:
            current[-1] += " " + line.strip()
        else:
            current.append(line.strip())
    return paragraphs


def sentences(text):
    out = []
    for part in BOUNDARY.split(text):
        if out and ABBREVIATION.search(out[-1]):
            out[-1] += " " + part
        else:
            out.append(part)
    return out


def align(english, german):
    """Pairs of two descriptions (synopsis, body)."""
    pairs = [(english[0], german[0])]
    left, right = units(english[1]), units(german[1])
    if len(left) == len(right):
        for a, b in zip(left, right):
            if len(a) == len(b):
                for x, y in zip(a, b):
                    cut = sentences(x), sentences(y)
                    pairs += zip(*cut) if len(cut[0]) == len(cut[1]) else [(x, y)]
    return [(" ".join(x.split()), " ".join(y.split())) for x, y in pairs]


def usable(x, y):
    """Whether a pair is translated, has words, and both sides have similar lengths."""
    words = len(x.split()), len(y.split())
    if x == y or not 1 <= min(words) or max(words) > MOST_WORDS or "<trans>" in y:
        return False
    if max(words) > 2.5 * min(words) + 3:
        return False
    letters = [sum(c.isalpha() for c in text) for text in (x, y)]
    return all(2 * n >= len(text.replace(" ", "")) for n, text in zip(letters, (x, y)))


def split_of(package):
    share = int(hashlib.md5(package.encode()).hexdigest(), 16) % SHARES
    return "test" if share < TEST else "valid" if share < TEST + VALID else "train"


def pairs_by_split(lists):
    english, german = descriptions(lists, "en"), descriptions(lists, "de")
    collected = {"test": {}, "valid": {}, "train": {}}  # of dicts, which keep the order
    for md5, (package, *text) in german.items():
        if md5 in english:
            for x, y in align(english[md5][1:], text):
                if usable(x, y):
                    collected[split_of(package)][x, y] = None
    sources, targets = set(), set()  # of the previous splits
    for pairs in collected.values():
        for pair in [p for p in pairs if p[0] in sources or p[1] in targets]:
            del pairs[pair]
        sources.update(x for x, _ in pairs)
        targets.update(y for _, y in pairs)
    return collected


def documents_by_split(lists):
    """Split -> pairs of its descriptions in order, with a pair of empty lines after each."""
    english, german = descriptions(lists, "en"), descriptions(lists, "de")
    found = {"test": [], "valid": [], "train": []}
    for md5, (package, *text) in german.items():
        if md5 in english:
            found[split_of(package)].append([pair for pair in align(english[md5][1:], text)
                                             if usable(*pair)])
    sources, targets = set(), set()  # of the previous splits
    collected = {}
    for split, documents in found.items():
        collected[split] = []
        for document in documents:
            kept = [pair for pair in document if pair[0] not in sources and pair[1] not in targets]
            collected[split] += [*kept, ("", "")] if kept else []
        sources.update(x for x, _ in collected[split] if x)
        targets.update(y for _, y in collected[split] if y)
    return collected


def check_folder(folder, program):
    """Ends the script where a folder cannot be listed."""
    try:
        os.listdir(folder)
    except OSError as error:
        sys.exit(f"{program}: {folder}: {error.strerror}")


def main(lists, folder, documents=False):
    for each in (lists, folder):
        check_folder(each, "get_data")
    collected = documents_by_split(lists) if documents else pairs_by_split(lists)
    for split, pairs in collected.items():
        if not pairs:
            sys.exit(f"get_data: {lists}: no pairs for {split} in the package descriptions")
    try:
        for split, pairs in collected.items():
            for side, language in enumerate(("en", "de")):
                with open(os.path.join(folder, f"{split}.{language}"), "w",
                          encoding="utf-8") as file:
                    file.writelines(pair[side] + "\n" for pair in pairs)
    except OSError as error:
        sys.exit(f"get_data: {error.filename or folder}: {error.strerror}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", metavar="LISTS", help="directory of apt lists")
    parser.add_argument("folder", metavar="FOLDER", help="output directory")
    parser.add_argument("--documents", action="store_true", help="write documents in order")
    main(**vars(parser.parse_args()))
