#!/usr/bin/env python3
"""The time that a persistent recurrence is predicted to take per step on an H100, by the arithmetic of
docs/design/cuda.md: the division into blocks of cuda/kernels/recurrent/persistent/plan.cu and its costs, a
barrier of blocks and the latencies of the point-wise step.

    persistent.py    prints the table of docs/design/cuda.md"""
import math

MULTIPROCESSORS, SHARED, CLOCK_GHZ = 132, 227 * 1024, 1.755
ROWS, THREADS, STAGED = 32, 256, 32 * 528
# From publications on Ampere and Hopper, not measured here: a barrier through the L2 cache; the loads
# of inputs and states, and the special functions, of a step.
BARRIER_US, POINTWISE_US = 1.0, 1.0
LAUNCH_US = 3.0  # a dependent kernel (predictions.py)
RATES = {"float32": 50e12, "bfloat16": 798e12}
# Planes of units with recurrent products and late products.
PLANES = {"gru reset=before": (2, 1), "gru reset=after": (3, 0), "lstm": (4, 0), "slstm": (4, 0), "rnn": (1, 0), "atr": (1, 0), "ran": (2, 0), "srn": (0, 1),
          "elstm1": (4, 0), "elstm2": (3, 0)}  # fmt: skip


def unit_of(row):
    """The unit with recurrent or late products that begins a row's name, or None."""
    if " input=x " in row:
        return None  # its gates do not read the state
    return next((unit for unit in PLANES if row.startswith(unit + " ")), None)


def launches_per_step(unit):
    """A product and the unit; with a late product the late value, its product, and the unit."""
    recurrents, late = PLANES[unit]
    return (2 if recurrents else 1) + (2 if late else 0)


def padded(n, step):
    return -(-n // step) * step


def clocks(columns, depth, bfloat16):
    """(clock cycles of a tile of rows, bytes of the weights, bytes of the output)."""
    if columns == 0:
        return 0, 0, 0
    size, step = (2, 16) if bfloat16 else (4, 4)
    columns, depth = padded(columns, step), padded(depth, step)
    weights = columns * (depth + 16 // size) * size
    loads = ROWS * depth * size / 24
    output = ROWS * (columns + 4) * 4
    if not bfloat16:
        return loads + ROWS * columns * depth / 64, weights, output
    groups = -(-columns // 48)
    return loads + 2 * depth * (columns + ROWS * groups) / 100, weights, output


def step_us(unit, batch, width, bfloat16, backward, normalizes=False):
    """Microseconds per step, and the blocks; None where the weights do not fit."""
    recurrents, late = PLANES[unit]
    per_channel = (1 if recurrents else 0, 1 if late else 0) if backward else (recurrents, late)
    depths = (recurrents * width, late * width) if backward else (width, width)
    best = None
    for slices in range(1, width + 1):
        channels = -(-width // slices)
        if -(-width // channels) != slices or max(per_channel) * channels > (96 if bfloat16 else 64):
            continue
        parts = [clocks(n * channels, depth, bfloat16) for n, depth in zip(per_channel, depths)]
        shared = sum(part[1] for part in parts) + max(STAGED, *(part[2] for part in parts))
        if shared > SHARED or slices > MULTIPROCESSORS:
            continue
        sets = min(MULTIPROCESSORS // slices, -(-batch // ROWS))
        tiles = -(-(-(-batch // sets)) // ROWS)
        cost = tiles * sum(part[0] for part in parts)
        if best is None or cost < best[0]:
            best = cost, slices * sets
    if best is None:
        return None
    products = (recurrents > 0) + (late > 0)
    exchange = products * (BARRIER_US + POINTWISE_US) if normalizes else 0
    return best[0] / CLOCK_GHZ / 1e3 + products * BARRIER_US + POINTWISE_US + exchange, best[1]


def alternating_us(unit, batch, width, bfloat16):
    """The same with the launches of every step."""
    recurrents, late = PLANES[unit]
    rate = RATES["bfloat16" if bfloat16 else "float32"]
    return launches_per_step(unit) * LAUNCH_US + 2e6 * batch * width * width * (recurrents + late) / rate


def main():
    print("| unit, B, H | precision | launches: forward, backward | persistent: forward | backward | blocks |\n|---|---|---|---|---|---|")
    for unit in ("gru reset=after", "gru reset=before", "lstm", "rnn"):
        for batch, width in ((128, 1024), (128, 512), (64, 512), (32, 256)):
            for bfloat16 in (False, True):
                launches = alternating_us(unit, batch, width, bfloat16)
                forward, backward = (step_us(unit, batch, width, bfloat16, back) for back in (False, True))
                print(f"| {unit}, {batch}, {width} | {'bfloat16' if bfloat16 else 'float32'} | {launches:.1f} | "
                      f"{forward[0]:.1f} | {backward[0]:.1f} | {forward[1]}, {backward[1]} |")
    print("\nNo row is predicted to be slower below so many multiply-adds of a step:")
    for normalizes in (False, True):
        for bfloat16 in (False, True):
            for backward in (False, True):
                rows = [(unit, b, h) for unit in PLANES for b in (8, 16, 32, 64, 96, 128, 192, 256) for h in range(128, 1025, 128)]
                least = min((b * h * h * sum(PLANES[unit]) for unit, b, h in rows if step_us(unit, b, h, bfloat16, backward, normalizes)[0] >
                             alternating_us(unit, b, h, bfloat16)), default=math.inf)
                print(f"normalizes {normalizes} bfloat16 {bfloat16} backward {backward}: {least:.2g}")


if __name__ == "__main__":
    main()
