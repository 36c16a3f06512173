"""The worked examples of the units in tests/nn are what their numpy program prints. Skipped where
there is no numpy."""

import pathlib
import re
import subprocess
import sys

NN = pathlib.Path(__file__).resolve().parent.parent / "nn"


def numbers(text):
    """Each line's words, and its numbers."""
    rows = re.findall(r'\{"(\w+)", "([^"]*)", (\w+),\s*\{([^}]*)\}\}', text)
    return [(row[:3], [float(value) for value in row[3].split(",")]) for row in rows]


def main():
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: no numpy")
        return 77
    now = subprocess.run([sys.executable, NN / "unit_examples.py"], check=True, capture_output=True,
                         text=True).stdout
    printed, kept = numbers(now), numbers((NN / "unit_examples.inc").read_text())
    assert printed and len(printed) == len(kept), (len(printed), len(kept))
    for (unit, values), (kept_unit, kept_values) in zip(printed, kept):
        assert unit == kept_unit, (unit, kept_unit)
        assert len(values) == len(kept_values), unit
        for value, kept_value in zip(values, kept_values):
            assert abs(value - kept_value) < 2e-9, (unit, value, kept_value)
    print(f"{len(printed)} examples agree")
    return 0


sys.exit(main())
