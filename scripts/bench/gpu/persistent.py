#!/usr/bin/env python3
"""The time that a persistent recurrence is predicted to take per step on an H200, by the arithmetic
of docs/benchmarks/gpu.md: the division into blocks of cuda/kernels/recurrent/persistent/plan.cu and
its costs, a barrier of blocks, and the launches of every step as an H200 has taken them.

    persistent.py    prints the table of docs/benchmarks/gpu.md"""
import math

MULTIPROCESSORS, SHARED, CLOCK_GHZ = 132, 227 * 1024, 1.98
ROWS, THREADS, WARPS = 32, 256, 8
SPACE = {False: 8 * 32 * 20 * 4, True: 256 * 8 * 16}
# A barrier through the L2 cache with the fences of the stores before it: three round trips
# of 0.5 us.
BARRIER_US, CHANNEL_CLOCKS = 1.5, 250
# The weights of a block, at the start of a kernel, divided by the steps of the benchmark.
START_US = 10 / 32
# A step of two kernels on an H200: 11.6 to 15.7 us in bfloat16 and 17.6 to 45 us in float32, of B
# 128 and H 512 to 1024. LAUNCH_US and RATES: a line through gru reset=after forward with B 128 and
# H 512 and 1024.
LAUNCH_US = {"float32": 6.0, "bfloat16": 5.2}  # a dependent kernel
RATES = {"float32": 36e12, "bfloat16": 180e12}
# Planes of units with recurrent products and late products.
PLANES = {"gru reset=before": (2, 1), "gru reset=after": (3, 0), "lstm": (4, 0), "slstm": (4, 0),
          "rnn": (1, 0), "atr": (1, 0), "ran": (2, 0), "srn": (0, 1),
          "elstm1": (4, 0), "elstm2": (3, 0)}


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


def max_columns(late, backward, bfloat16):
    return (48 if backward else 64 if late else 96) if bfloat16 else 64


def clocks(columns, depth, rows, bfloat16):
    """(clock cycles of a product, bytes of the weights, padded columns)."""
    if columns == 0:
        return 0, 0, 0
    columns, depth = ((padded(columns, 16), padded(depth, 32)) if bfloat16
                      else (padded(columns, 8), padded(depth, 4)))
    weights = columns * (depth * 2 if bfloat16 else depth * 4 + 16)
    computed = padded(rows, 16) if bfloat16 else padded(rows, ROWS)
    cost = 1600 * -(-rows // ROWS) + rows * depth * (2 if bfloat16 else 4) / 48
    cost += (computed * columns * depth / (800 if bfloat16 else 100)
             + 2 * WARPS * 4 * computed * columns / 128)
    return cost, weights, columns


def step_us(unit, batch, width, bfloat16, backward, normalizes=False):
    """Microseconds per step, and the blocks; None where the weights do not fit."""
    recurrents, late = PLANES[unit]
    per_channel = (1 if recurrents else 0, 1 if late else 0) if backward else (recurrents, late)
    depths = (recurrents * width, late * width) if backward else (width, width)
    best = None
    for slices in range(1, width + 1):
        channels = -(-width // slices)
        if (-(-width // channels) != slices
            or max(per_channel) * channels > max_columns(late, backward, bfloat16)):
            continue
        sets = min(MULTIPROCESSORS // slices, -(-batch // ROWS))
        if sets == 0:
            continue
        rows = -(-batch // sets)
        parts = [clocks(n * channels, depth, rows, bfloat16)
                 for n, depth in zip(per_channel, depths)]
        shared = (sum(part[1] for part in parts) + SPACE[bfloat16]
                  + (0 if backward else 4 * sum(part[2] for part in parts)))
        if shared > SHARED:
            continue
        cost = sum(part[0] for part in parts) + CHANNEL_CLOCKS * -(-rows * channels // THREADS)
        if best is None or cost < best[0]:
            best = cost, slices * -(-batch // rows)
    if best is None:
        return None
    products = (recurrents > 0) + (late > 0)
    exchange = products * (BARRIER_US + 1.0) if normalizes else 0
    return best[0] / CLOCK_GHZ / 1e3 + products * BARRIER_US + START_US + exchange, best[1]


def alternating_us(unit, batch, width, bfloat16):
    """The same with the launches of every step."""
    recurrents, late = PLANES[unit]
    precision = "bfloat16" if bfloat16 else "float32"
    rate = RATES[precision]
    return (launches_per_step(unit) * LAUNCH_US[precision]
            + 2e6 * batch * width * width * (recurrents + late) / rate)


def main():
    print("| unit, B, H | precision | launches: forward, backward | persistent: forward | backward "
          "| blocks |\n|---|---|---|---|---|---|")
    for unit in ("gru reset=after", "gru reset=before", "lstm", "rnn"):
        for batch, width in ((128, 1024), (128, 512), (64, 512), (32, 256)):
            for bfloat16 in (False, True):
                launches = alternating_us(unit, batch, width, bfloat16)
                forward, backward = (step_us(unit, batch, width, bfloat16, back)
                                     for back in (False, True))
                print(f"| {unit}, {batch}, {width} | {'bfloat16' if bfloat16 else 'float32'} | "
                      f"{launches:.1f} | "
                      f"{forward[0]:.1f} | {backward[0]:.1f} | {forward[1]}, {backward[1]} |")
    print("\nNo row is predicted to be slower below so many multiply-adds of a step:")
    for normalizes in (False, True):
        for bfloat16 in (False, True):
            for backward in (False, True):
                rows = [(unit, b, h) for unit in PLANES for b in (8, 16, 32, 64, 96, 128, 192, 256)
                        for h in range(128, 1025, 128)]
                least = min((b * h * h * sum(PLANES[unit]) for unit, b, h in rows if step_us(
                    unit, b, h, bfloat16, backward,
                    normalizes)[0] > alternating_us(unit, b, h, bfloat16)), default=math.inf)
                print(f"normalizes {normalizes} bfloat16 {bfloat16} backward {backward}: "
                      f"{least:.2g}")


if __name__ == "__main__":
    main()
