#!/usr/bin/env python3
"""Generates src/text/unicode_tables.inc: the general categories P, S and N for BLEU's international
tokenization, category M, white space as in str.split(), and the tables of str.lower(), str.upper()
and str.title(). The categories come from the package "regex", which sacreBLEU uses, everything else
from Python. Usage: make_unicode_tables.py > src/text/unicode_tables.inc"""
import sys
import unicodedata

try:
    import regex
except ImportError:
    sys.exit("make_unicode_tables.py: the package regex is missing: pip install regex")


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
        print("    " + " ".join("{" + ", ".join(f"0x{x:X}" for x in row) + "},"
                                for row in rows[i : i + per_line]))
    print("};")


def has_property(letter):
    pattern = regex.compile(r"\p{%s}" % letter)
    return lambda c: pattern.match(c) is not None


# A capital sigma becomes final after a cased letter, with case-ignorable characters in between
# (Unicode 15, table 3-17). str.lower() tells which characters are cased or case-ignorable.
def is_cased(c):
    return (c + "\u03a3").lower()[-1] == "\u03c2"


def is_ignorable(c):
    return ("A" + c + "\u03a3").lower()[-1] == "\u03c2" and not is_cased(c)


def main():
    print(f"// Categories of regex {regex.__version__}, case of Unicode "
          f"{unicodedata.unidata_version}; "
          "made by scripts/dev/make_unicode_tables.py. Do not edit.")
    for name, letter in (("punctuation", "P"), ("symbols", "S"), ("numbers", "N"), ("marks", "M")):
        table(name, "Range", ranges(has_property(letter)), 7)
    table("spaces", "Range", ranges(str.isspace), 7)
    table("cased", "Range", ranges(is_cased), 7)
    table("case_ignorable", "Range", ranges(is_ignorable), 7)
    lower = []
    for code in range(sys.maxunicode + 1):
        text = chr(code).lower()
        if code == 0x3A3:
            text = "\u03c3"
        if text != chr(code) and len(text) == 1:
            lower.append((code, ord(text)))
    table("lowercase", "Pair", lower, 7)
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    table("uppercase", "Pair",
          [(ord(c), ord(c.upper())) for c in every if len(c.upper()) == 1 and c.upper() != c], 7)
    table("long_uppercase", "Mapping",
          [(ord(c), *map(ord, c.upper())) for c in every if len(c.upper()) > 1], 5)
    # Title case where it differs from upper case.
    table("titlecase", "Mapping",
          [(ord(c), *map(ord, c.title())) for c in every if c.title() != c.upper()], 5)


main()
