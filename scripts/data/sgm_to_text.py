#!/usr/bin/env python3
"""Extracts the segments of an NIST SGM file (WMT development and test sets), one per line:
sgm_to_text.py FILE.sgm > FILE

Other lines are skipped, entities are unescaped, and white space in a segment becomes single
spaces."""
import html
import re
import sys

SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.S | re.I)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        print(f"sgm_to_text: {sys.argv[1]}: {getattr(error, 'strerror', None) or error}",
              file=sys.stderr)
        return 3
    segments = SEGMENT.findall(text)
    if not segments:
        print(f"sgm_to_text: {sys.argv[1]}: has no <seg>", file=sys.stderr)
        return 3
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for segment in segments:
        print(" ".join(html.unescape(segment).split()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
