#!/usr/bin/env python3
"""Writes src/eval/unicode_tables.inc from Python's own unicodedata: the ranges of the categories that BLEU's international
tokenisation reads (P, S, N), white space as str.split() sees it, and str.lower() of single characters.
Usage: make_unicode_tables.py > src/eval/unicode_tables.inc"""
import sys
import unicodedata


def ranges(belongs):
    out, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and belongs(chr(code))
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            out.append((start, code - 1))
            start = None
    return out


def table(name, kind, rows, per_line):
    print(f"constexpr {kind} {name}[] = {{")
    for i in range(0, len(rows), per_line):
        print("    " + " ".join("{" + ", ".join(f"0x{x:X}" for x in row) + "}," for row in rows[i : i + per_line]))
    print("};")


def main():
    print(f"// Unicode {unicodedata.unidata_version}; made by scripts/make_unicode_tables.py. Do not edit.")
    for name, letter in (("punctuation", "P"), ("symbols", "S"), ("numbers", "N")):
        table(name, "Range", ranges(lambda c: unicodedata.category(c)[0] == letter), 7)
    table("spaces", "Range", ranges(str.isspace), 7)
    lower = []
    for code in range(sys.maxunicode + 1):
        text = chr(code).lower()
        if text != chr(code) and len(text) == 1:
            lower.append((code, ord(text)))
    table("lowercase", "Pair", lower, 7)


main()
