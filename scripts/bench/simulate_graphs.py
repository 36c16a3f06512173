#!/usr/bin/env python3
"""How many updates of a training replay a CUDA graph: batches of --words padded target words from
sentences with log-normal lengths (like WMT's: a median of 25 tokens, at most 100), grouped by length
within 20,000 pairs, through the rule of cuda/runtime/graph.cpp, with the shapes as they are and
rounded up. Prints the shapes, and the shares of updates that replay or capture a graph."""
import argparse
import collections
import math
import random
import sys


def round_length(n, largest):
    """n rounded up to a multiple of 2, 4 or 8, as far as this adds at most an eighth."""
    multiple = 1
    while 2 * multiple <= largest and -n % (2 * multiple) <= n // 8:
        multiple *= 2
    return n + -n % multiple


def batches(updates, words):
    made = 0
    while made < updates:
        pairs = []
        while len(pairs) < 20000:
            source = int(math.exp(random.gauss(3.2, 0.6))) + 1
            target = int(source * math.exp(random.gauss(0.03, 0.25))) + 1
            if max(source, target) <= 100:
                pairs.append((target + 1, source + 1))
        pairs.sort()
        found, batch = [], []
        for pair in pairs:
            if batch and pair[0] * (len(batch) + 1) > words:
                found.append(batch)
                batch = []
            batch.append(pair)
        random.shuffle(found)
        for batch in found[: updates - made]:
            made += 1
            yield max(s for _, s in batch), max(t for t, _ in batch), len(batch), sum(t for t, _ in batch)


def key(batch, rounds):
    s, t, b, tokens = batch
    if rounds:
        s, t, b = round_length(s, 8), round_length(t, 4), round_length(b, 8)
    part = (t * b + 7) // 8
    return s, t, b, min(t * b, -(-tokens // part) * part)


def simulate(keys, room, by_count):
    """Shares of updates that replay and capture. A key's graph is captured at its second use."""
    held, uses, replayed, captured = {}, collections.Counter(), 0, 0
    for i, name in enumerate(keys):
        uses[name] += 1
        if i % 8192 == 8191:
            for other in uses:
                uses[other] //= 2
        if name in held:
            replayed += 1
        elif uses[name] >= 2:
            if len(held) >= room:
                oldest = min(held, key=(lambda k: (uses[k], held[k])) if by_count else held.get)
                if by_count and uses[oldest] >= uses[name]:
                    continue
                del held[oldest]
            captured += 1
        else:
            continue
        held[name] = i
    return replayed / len(keys), captured / len(keys)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=20000)
    parser.add_argument("--words", type=int, default=4096)
    parser.add_argument("--check", type=float, metavar="PERCENT",
                        help="only simulate what nmt-train does; fail if fewer updates replay")
    args = parser.parse_args()
    random.seed(1)
    made = list(batches(args.updates, args.words))
    if args.check is not None:
        replayed = 100 * simulate([key(batch, True) for batch in made], 518, True)[0]
        print(f"{replayed:.1f} % of {args.updates} updates replay a graph; at least {args.check:g} % are required")
        return int(replayed < args.check)
    padded = [sum(t * b + s * b for s, t, b, _ in ((key(x, rounds)) for x in made)) for rounds in (False, True)]
    print(f"padding by rounding: {100 * (padded[1] / padded[0] - 1):.1f} %")
    print("| rounding | graphs | shapes | replayed | captured, least recently used evicted | captured, least often used |\n|---|---|---|---|---|---|")
    for rounds in (False, True):
        keys = [key(batch, rounds) for batch in made]
        for room in (65, 250, 518):
            _, old = simulate(keys, room, False)
            replayed, new = simulate(keys, room, True)
            print(f"| {'yes' if rounds else 'no'} | {room} | {len(set(keys))} | {100 * replayed:.0f} % | {100 * old:.0f} % | {100 * new:.0f} % |")


if __name__ == "__main__":
    sys.exit(main())
