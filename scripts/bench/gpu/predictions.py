"""What docs/benchmarks/gpu.md predicts for rows of nmt-bench, to stand beside the measurements.

A prediction is the larger of the time of the row's arithmetic and of its memory traffic, at the
rates measured on these devices with PyTorch (8192-cubed products in bfloat16, device-to-device
copies, counting bytes read and written), plus 3 us for each dependent kernel. A decoding step at
batch size 1 reads all weights once, in the precision of the row. Rows with a figure of their own
come from a count of launches, bytes and operations of the whole step (build/bin/step_counts): the
sum of 3 us per launch, the products' operations and the bytes of all other calls."""
import re

from persistent import launches_per_step, step_us, unit_of

LAUNCH_MS = 0.003
# Part of a device's name: (copied bytes/s, {precision: operations/s}).
DEVICES = {
    "H200": (4.3e12, {"float32": 50e12, "tf32": 380e12, "bfloat16": 790e12}),
    "H100": (3.0e12, {"float32": 50e12, "tf32": 380e12, "bfloat16": 798e12}),
}
# (pattern of the row, precision, part of the device's name): (ms, reason).
FIXED = (
    (r"step/wmt14-en-de-lrn olrn B 128 T 32: whole step", "bfloat16", "H100", 11.8,
     "588 launches, 24.8 GB, 3.28 TFLOP"),
    (r"step/wmt14-en-de-lrn olrn B 128 T 32: whole step", "bfloat16", "H200", 10.0,
     "588 launches, 24.8 GB, 3.28 TFLOP"),
)
SEARCH_STEP = 39  # launches (docs/design/cuda.md, "Launches of a search step")
# State vectors of units with more than one.
STATES = {"lstm": 2, "slstm": 3, "srn": 2, "ran": 2, "elstm1": 2, "elstm2": 2}
# Units with trained vectors: the backward pass sets the sums of their gradients to 0 and adds them
# up with two launches.
WITH_VECTORS = ("sru", "ssru", "rglru", "hgrn", "elstm1", "elstm2")
# Units with a trained vector for each position, whose gradients one more launch adds up.
WITH_POSITIONS = ("elstm1", "elstm2")


def recurrence_launches(row, steps, precision):
    """Launches of a row of the table `recurrences`, as cuda/kernels/recurrent/recurrence.cu
    makes them."""
    unit, name, backward = unit_of(row), row.split(" ")[0], " backward " in row
    own = 1 if " persistent " in row or not unit else steps * launches_per_step(unit)
    if not backward:
        # In bfloat16 the first product of a step-by-step pass rounds the initial state.
        rounds = precision == "bfloat16" and unit and " persistent " not in row and unit != "srn"
        return own + bool(rounds)
    zeros = STATES.get(name, 1) if own > 1 else 0  # the gradients of the states start at 0
    return own + zeros + (3 if name in WITH_VECTORS else 0) + (1 if name in WITH_POSITIONS else 0)


def launches(name, precision):
    """Dependent kernels of one run of a row, or None where they have not been counted."""
    table, row = name.split("/", 1)
    if table == "pointwise" and row.startswith(("layer_norm_backward", "sum_rows")):
        return 2
    if table in ("pointwise", "optimizer"):
        return 1
    if table == "products":
        return 3 if precision == "bfloat16" else 1  # both inputs are rounded first
    if re.match(r"decoding/wmt14-en-de-lrn olrn .* batch 1 beam ", name):
        return SEARCH_STEP
    steps = re.search(r" T (\d+) ", row)
    if table == "recurrences" and steps:
        if not unit_of(row) and int(steps[1]) > 100:
            return None  # few long sentences: the chain of steps takes the time
        return recurrence_launches(row, int(steps[1]), precision)
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
    persistent = re.fullmatch(
        r"recurrences/(.+) persistent (forward|backward) T (\d+) B (\d+) H (\d+)", name)
    if persistent:
        unit, direction, steps, batch, width = persistent.groups()
        unit = unit_of(unit + " ")
        if not unit or precision not in ("float32", "bfloat16") or kind != "H200":
            return None
        microseconds, blocks = step_us(unit, int(batch), int(width), precision == "bfloat16",
                                       direction == "backward")
        return (1e-3 * int(steps) * microseconds,
                f"1 kernel of {blocks} blocks, {microseconds:.1f} us per step")
    copied, rates = DEVICES[kind]
    arithmetic, traffic = 1e3 * row["flops"] / rates[precision], 1e3 * row["bytes"] / copied
    return (max(arithmetic, traffic) + count * LAUNCH_MS,
            f"{count} kernel{'s' * (count > 1)}, "
            f"{'arithmetic' if arithmetic > traffic else 'memory'}")
