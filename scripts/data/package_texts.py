#!/usr/bin/env python3
"""Makes texts of two tasks from Debian's package descriptions, which it gets through apt:

    FOLDER/summaries/{train,valid,test}.{long,short}   first paragraph of a description; synopsis
    FOLDER/sections/{train,valid,test}.tsv             section, tab, synopsis and first paragraph

One text per line. The name of the source package determines the split, 2 % each for valid and test;
no paragraph or synopsis of valid or test is in train. Summaries have paragraphs of 15 to 120 words
and synopses of at least 3. Sections have at least 200 packages; contrib and non-free count as main.

    package_texts.py [--lists LISTS] FOLDER

LISTS is a folder of apt lists (*_Translation-en*, *_Packages*). Without it, the lists of this
system's sources are downloaded to a temporary folder."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from align_descriptions import check_folder, descriptions, read, split_of, units

SPLITS = ("test", "valid", "train")
MIN_PACKAGES = 200


def download(folder):
    """Downloads the lists; returns their folder."""
    lists = folder / "lists"
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    command = ["apt-get", "-q", "-o", f"Dir::State::lists={lists}",
               "-o", f"Dir::Cache={folder}/cache",
               *(["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []),
               "-o", "Acquire::Languages=en", "-o", "Acquire::Retries=1",
               "-o", "Acquire::http::Timeout=30", "-o", "Acquire::https::Timeout=30", "update"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not any("_Translation-en" in name for name in os.listdir(lists)):
        message = re.search(r"^(?:E|W|Err).*", done.stdout + done.stderr, re.M)
        sys.exit("package_texts: apt downloaded no package descriptions: "
                 f"{message[0] if message else 'no error message'}")
    return lists


def packages(lists):
    """md5 of the description -> (source package, section), of the first package that has it."""
    found = {}
    for name in sorted(os.listdir(lists)):
        if not re.search(r"_Packages(\.\w+)?$", name):
            continue
        for stanza in package_file(os.path.join(lists, name)).split("\n\n"):
            fields = dict(line.split(": ", 1) for line in stanza.split("\n") if ": " in line
                          and not line.startswith(" "))
            if "Package" in fields and "Section" in fields and "Description-md5" in fields:
                source = fields.get("Source", fields["Package"]).split(" ")[0]
                found.setdefault(fields["Description-md5"],
                                 (source, fields["Section"].split("/")[-1]))
    return found


def package_file(path):
    if path.endswith("_Packages"):
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    return read(path, "package_texts")


def examples(lists):
    """(split, section, synopsis, first paragraph) of every description, in the order of the
    packages."""
    of_package = packages(lists)
    for md5, (package, synopsis, body) in descriptions(lists, "en").items():
        source, section = of_package.get(md5, (package, None))
        paragraphs = units(body)
        paragraph = " ".join(paragraphs[0][0].split()) if paragraphs else ""
        yield split_of(source), section, " ".join(synopsis.split()), paragraph


def without_repeats(collected, keys):
    """Removes examples with a text of an earlier split or example."""
    seen = set()
    out = {}
    for split in SPLITS:
        out[split] = []
        for example in collected[split]:
            texts = [text for text in keys(example) if text]
            if not any(text in seen for text in texts):
                out[split].append(example)
                seen.update(texts)
    return out


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    partial.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--lists", type=pathlib.Path,
                        help="folder of apt lists (default: downloaded)")
    args = parser.parse_args()
    if args.lists:
        check_folder(args.lists, "package_texts")
    if args.folder.exists() and not args.folder.is_dir():
        parser.error(f"{args.folder}: is no directory")
    with tempfile.TemporaryDirectory() as temporary:
        collected = {split: [] for split in SPLITS}
        for split, *example in examples(args.lists or download(pathlib.Path(temporary))):
            collected[split].append(example)
    if not collected["train"]:
        sys.exit(f"package_texts: {args.lists or 'the downloaded lists'}: no package descriptions")

    summaries = without_repeats(collected, lambda e: e[1:])
    count = collections.Counter(section for split in SPLITS for section, *_ in collected[split])
    labels = {section
              for section, packages_in in count.items() if section and packages_in >= MIN_PACKAGES}
    sections = without_repeats(collected, lambda e: [f"{e[1]} {e[2]}"])
    for split in SPLITS:
        pairs = [(long, short) for _, short, long in summaries[split] if 15 <= len(long.split())
                                             <= 120 and len(short.split()) >= 3]
        for side, name in enumerate(("long", "short")):
            write(args.folder / "summaries" / f"{split}.{name}", [pair[side] for pair in pairs])
        rows = [f"{section}\t{synopsis}. {paragraph}".strip()
                for section, synopsis, paragraph in sections[split] if section in labels]
        write(args.folder / "sections" / f"{split}.tsv", rows)
        print(f"{split}: {len(pairs):,} summaries, {len(rows):,} texts of {len(labels)} sections")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"package_texts: {error.filename}: {error.strerror}")
