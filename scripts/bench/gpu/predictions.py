"""What docs/design/cuda.md predicts for rows of nmt-bench, to stand beside the measurements.

A prediction is the larger of the time of the row's arithmetic and of its memory traffic, at the rates
measured on these devices with PyTorch (8192-cubed products in bfloat16, device-to-device copies,
counting bytes read and written), plus 3 us for each dependent kernel. Rows with a figure of their own
come from a count of launches, bytes and operations of the whole step (build/bin/step_counts): the
sum of 3 us per launch, the products' operations and the bytes of all other calls."""
import re

from persistent import PLANES, step_us

LAUNCH_MS = 0.003
# Part of a device's name: (copied bytes/s, {precision: operations/s}).
DEVICES = {
    "H200": (4.3e12, {"float32": 50e12, "tf32": 380e12, "bfloat16": 790e12}),
    "H100": (3.0e12, {"float32": 50e12, "tf32": 380e12, "bfloat16": 798e12}),
}
# (pattern of the row, precision, part of the device's name): (ms, reason).
FIXED = (
    (r"step/wmt14-en-de-lrn olrn B 128 T 32: whole step", "bfloat16", "H100", 11.8, "588 launches, 24.8 GB, 3.28 TFLOP"),
    (r"step/wmt14-en-de-lrn olrn B 128 T 32: whole step", "bfloat16", "H200", 10.0, "588 launches, 24.8 GB, 3.28 TFLOP"),
    (r"decoding/wmt14-en-de-lrn olrn .* batch 1 beam \d", "", "H", 39 * LAUNCH_MS, "39 launches a step"),
)
# Dependent kernels of a row, by the table and the unit.
MATRIX_UNITS = ("gru", "lstm", "rnn", "srn", "atr", "ran", "elstm")


def launches(name, precision):
    """Dependent kernels of one run of a row, or None where they have not been counted."""
    table, row = name.split("/", 1)
    if table == "pointwise" and row.startswith(("layer_norm_backward", "sum_rows")):
        return 2
    if table in ("pointwise", "optimizer", "products"):
        return 2 if table == "products" and precision == "bfloat16" else 1
    steps = re.search(r" T (\d+) ", row)
    if table == "recurrences" and steps:
        matrix = row.startswith(MATRIX_UNITS) and " input=x " not in row
        per_step = 2 if matrix else 0
        if per_step == 0 and int(steps[1]) > 100:
            return None  # few long sentences: the chain of steps takes the time
        return 1 if " persistent " in row else max(1, per_step * int(steps[1]))
    return None


def predict(name, row, precision, device):
    """(ms, reason) or None."""
    kind = next((kind for kind in DEVICES if kind in device), None)
    if not kind:
        return None
    for pattern, of, where, ms, reason in FIXED:
        if re.fullmatch(pattern, name) and of in ("", precision) and where in kind:
            return ms, reason
    count = launches(name, precision)
    if count is None or "error" in row:
        return None
    persistent = re.fullmatch(r"recurrences/(.+) persistent (forward|backward) T (\d+) B (\d+) H (\d+)", name)
    if persistent:
        unit, direction, steps, batch, width = persistent.groups()
        unit = next((known for known in PLANES if unit == known or unit.startswith(known + " ")), None)
        if not unit or precision not in ("float32", "bfloat16") or kind != "H100":
            return None
        microseconds, blocks = step_us(unit, int(batch), int(width), precision == "bfloat16", direction == "backward")
        return 1e-3 * int(steps) * microseconds, f"1 kernel of {blocks} blocks, {microseconds:.1f} us per step"
    copied, rates = DEVICES[kind]
    arithmetic, traffic = 1e3 * row["flops"] / rates[precision], 1e3 * row["bytes"] / copied
    return max(arithmetic, traffic) + count * LAUNCH_MS, f"{count} kernel{'s' * (count > 1)}, {'arithmetic' if arithmetic > traffic else 'memory'}"
