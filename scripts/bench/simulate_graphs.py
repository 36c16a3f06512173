#!/usr/bin/env python3
"""How many updates of a training replay a CUDA graph: batches of --words padded target words from
sentences with log-normal lengths (like WMT's: a median of 25 tokens, at most 100), grouped by
length within 20,000 pairs, through the rule of cuda/runtime/graph_budget.h, with the shapes as they
are and rounded up. Prints the shapes, and the shares of updates that replay or capture a graph.
With --ranks, every rank takes each Nth sentence of a batch and has graphs of its own, of which
rounded shapes hold the share of each rank; an update replays where those of all ranks do. With
--optimizer-delay, an update has several passes, and each pass counts: the first one, which
overwrites old gradients, has other graphs than the others, and so has the last one with several
ranks, which sums the gradients (Model::accumulate_gradients())."""
import argparse
import collections
import math
import pathlib
import random

from common import arguments

# Graphs of a paper-size model that 2^20 calls hold (docs/design/cuda.md): 588 launches, and
# uploads.
ROOM = 1700


def round_length(n, largest):
    """n rounded up to a multiple of 2, 4 or 8, as far as this adds at most an eighth."""
    multiple = 1
    while 2 * multiple <= largest and -n % (2 * multiple) <= n // 8:
        multiple *= 2
    return n + -n % multiple


def round_tokens(tokens, padded):
    """tokens rounded up to eighths of the padded batch."""
    part = (padded + 7) // 8
    return min(padded, -(-tokens // part) * part)


def shape_errors(path):
    """Lines "length N LARGEST ROUNDED" and "tokens N PADDED ROUNDED" that this script computes
    otherwise; the unit tests compare them with data/round_shape.h."""
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, n, of, rounded = line.split()
        found = (round_length if kind == "length" else round_tokens)(int(n), int(of))
        if found != int(rounded):
            yield f"{path.name}: {line}: this script computes {found}"


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
            yield [(s, t) for t, s in batch]


def shape(pairs):
    return max(s for s, _ in pairs), max(t for _, t in pairs), len(pairs), sum(t for _, t in pairs)


def share(batch, rank, ranks):
    """The shape of a rank's share, and the steps and sentences that hold the share of each rank."""
    return shape(batch[rank::ranks]), (*shape(batch)[:2], -(-len(batch) // ranks))


def key(own, rounds):
    (s, t, b, tokens), of_shares = own
    if rounds:
        s, t, b = of_shares
        s, t, b = round_length(s, 8), round_length(t, 4), round_length(b, 8)
    return s, t, b, round_tokens(tokens, t * b)


def simulate(keys, room, by_count):
    """Which updates replay, and which capture. A key's graph is captured at its second use."""
    held, seen, uses, replayed, captured = {}, set(), collections.Counter(), set(), set()
    for i, name in enumerate(keys):
        uses[name] += 1
        if i % 8192 == 8191:
            for other in uses:
                uses[other] //= 2
        if name in held:
            replayed.add(i)
        elif name in seen:
            if len(held) >= room:
                oldest = min(held, key=(lambda k: (uses[k], held[k])) if by_count else held.get)
                if by_count and uses[oldest] >= uses[name]:
                    continue
                del held[oldest]
            captured.add(i)
        else:
            seen.add(name)
            continue
        held[name] = i
    return replayed, captured


def drifting_keys(count):
    """Few keys are frequent, and which ones changes. tests/emulator/graph_budget_test.cpp
    has the same."""
    state = 1
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        draw = state >> 48
        yield (60 * draw**3 >> 48) + i // 3000 * 7


def room_errors(path):
    """Lines "graphs ROOM USES REPLAYED CAPTURED" that this script computes otherwise; a unit test
    compares them with cuda/runtime/graph_budget.h."""
    for line in path.read_text(encoding="utf-8").splitlines():
        _, room, uses, replayed, captured = line.split()
        found = simulate(drifting_keys(int(uses)), int(room), True)
        if [len(part) for part in found] != [int(replayed), int(captured)]:
            yield f"{path.name}: {line}: this script computes {len(found[0])} {len(found[1])}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=arguments.whole(), default=20000)
    parser.add_argument("--words", type=arguments.whole(), default=4096)
    parser.add_argument("--ranks", type=arguments.whole(), default=1,
                        help="each with --words words of a batch")
    parser.add_argument("--optimizer-delay", type=arguments.whole(), default=1,
                        help="passes of an update")
    parser.add_argument("--check", type=arguments.number(0, most=100), metavar="PERCENT",
                        help="only simulate what nmt-train does; fail if fewer updates replay")
    args = parser.parse_args()
    random.seed(1)
    made = [[] for _ in range(args.ranks)]
    for batch in batches(args.updates, args.words * args.ranks):
        if len(batch) < args.ranks:
            parser.error(f"--words {args.words}: a batch has {len(batch)} sentences for "
                         f"{args.ranks} ranks")
        for rank, own in enumerate(made):
            own.append(share(batch, rank, args.ranks))

    def percent(results, of_all):
        return 100 * len(of_all(*results)) / args.updates

    def place_in_update(i):
        of_update = i % args.optimizer_delay
        return of_update == 0, args.ranks > 1 and of_update == args.optimizer_delay - 1

    def of_ranks(rounds, room, by_count):
        """Shares of updates in which all ranks replay, and in which any of them captures."""
        results = [simulate([(*key(batch, rounds), *place_in_update(i))
                             for i, batch in enumerate(own)], room, by_count) for own in made]
        return (percent([r for r, _ in results], set.intersection),
                percent([c for _, c in results], set.union))

    if args.check is not None:
        tests = pathlib.Path(__file__).parents[2] / "tests"
        if errors := [*shape_errors(tests / "data/round_shapes.txt"),
                      *room_errors(tests / "emulator/graph_rooms.txt")]:
            print("\n".join(errors))
            return 1
        replayed = of_ranks(True, ROOM, True)[0]
        print(f"{replayed:.1f} % of {args.updates} updates replay a graph; at least {args.check:g} "
              "% are required")
        return int(replayed < args.check)
    padded = [sum(t * b + s * b for own in made for s, t, b, _ in ((key(x, rounds)) for x in own))
              for rounds in (False, True)]
    print(f"padding by rounding: {100 * (padded[1] / padded[0] - 1):.1f} %")
    print("| rounding | graphs | shapes | replayed | captured, least recently used evicted | "
          "captured, least often used |\n|---|---|---|---|---|---|")
    for rounds in (False, True):
        shapes = len({key(x, rounds) for x in made[0]})
        for room in (65, 518, ROOM):
            _, old = of_ranks(rounds, room, False)
            replayed, new = of_ranks(rounds, room, True)
            print(f"| {'yes' if rounds else 'no'} | {room} | {shapes} | {replayed:.0f} % | "
                  f"{old:.0f} % | {new:.0f} % |")


if __name__ == "__main__":
    arguments.call(main)
