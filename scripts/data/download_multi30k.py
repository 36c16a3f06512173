#!/usr/bin/env python3
"""Downloads Multi30k task 1, raw (Elliott et al. 2016), from its repository into a folder
as train, valid and test, each .en and .de. Every file is checked by MD5 (from torchtext)
and number of lines."""
import argparse
import gzip
import hashlib
import os
import sys
import urllib.request

HOME = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
FILES = (  # local name, remote name, lines, MD5 of the .gz
    ("train.en", "train.en.gz", 29000, "0065d13af80720a55ca8153d126e6627"),
    ("train.de", "train.de.gz", 29000, "81ff90b99829c0cd4b1b587d394afd39"),
    ("valid.en", "val.en.gz", 1014, "2b69aa9253948ac9f67e94917272dd40"),
    ("valid.de", "val.de.gz", 1014, "6e0e229eb049e3fc99a1ef02fb2d5f91"),
    ("test.en", "test_2016_flickr.en.gz", 1000, "ff2c0fcb4893a13bd73414306bc250ae"),
    ("test.de", "test_2016_flickr.de.gz", 1000, "efd67d314d98489b716b145475101932"),
)
SECONDS, MOST_BYTES = 15, 20_000_000


def check(name, packed, lines, md5):
    """The text of a downloaded file, or ValueError."""
    found = hashlib.md5(packed).hexdigest()
    if found != md5:
        raise ValueError(f"{name}: MD5 {found}, expected {md5}")
    text = gzip.decompress(packed)
    if text.count(b"\n") != lines:
        raise ValueError(f"{name}: {text.count(bytes([10]))} lines, expected {lines}")
    return text


def main(folder):
    if not os.path.isdir(folder):
        sys.exit(f"get_data: Multi30k: {folder}: is no directory")
    for ours, theirs, lines, md5 in FILES:
        try:
            with urllib.request.urlopen(HOME + theirs, timeout=SECONDS) as answer:
                text = check(theirs, answer.read(MOST_BYTES), lines, md5)
        except (OSError, EOFError, ValueError) as error:
            sys.exit(f"get_data: Multi30k: {theirs}: {error}")
        try:
            with open(os.path.join(folder, ours), "wb") as file:
                file.write(text)
        except OSError as error:
            sys.exit(f"get_data: Multi30k: {error.filename or ours}: {error.strerror}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", help="output directory")
    main(parser.parse_args().folder)
