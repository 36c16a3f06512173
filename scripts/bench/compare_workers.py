#!/usr/bin/env python3
"""Compares ways to use the same number of threads in nmt-translate: one worker with all of them,
one worker per thread, and the choice of --workers auto. Prints sentences per second (the median
over the rounds, measured by nmt-translate without loading), the ratio to one worker, and the peak
memory. The three ways alternate, and their outputs must be equal.

    compare_workers.py MODEL TEXT [--beams 4 1] [--batches 64 1] [--precisions float32 int8]

Other options are passed to nmt-translate. With a model of random weights, --max-length-factor 1
--max-length-offset 0 makes most outputs as long as their sources.

nmt-translate is taken from $NMT_BUILD, else build/."""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

from common import arguments, system

PROGRAM = system.programs() / "nmt-translate"


def translate(options, *more):
    """Output, sentences per second and peak memory in MB of one run."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        command = [PROGRAM, "-m", options.model, "-i", options.text, *more, *options.more]
        child = subprocess.Popen([str(word) for word in command], stdout=out, stderr=log)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        log.seek(0)
        messages = log.read().decode()
        if child.returncode:
            arguments.fail(f"{PROGRAM.name}: status {child.returncode}: "
                           f"{arguments.reason(messages)}", arguments.FAILED)
        speed = float(re.search(r"([\d.]+) sentences/s", messages).group(1))
        return out.read(), speed, usage.ru_maxrss / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=arguments.folder, help="model directory")
    parser.add_argument("text", type=arguments.file, help="source text, one sentence per line")
    parser.add_argument("--beams", type=arguments.whole(), nargs="+", default=[4, 1])
    parser.add_argument("--batches", type=arguments.whole(), nargs="+", default=[64, 1],
                        help="sentences per batch")
    parser.add_argument("--precisions", nargs="+", default=["float32", "int8"])
    parser.add_argument("--threads", type=arguments.whole(), default=len(os.sched_getaffinity(0)),
                        help="threads in all (%(default)s)")
    parser.add_argument("--rounds", type=arguments.whole(), default=3)
    options, options.more = parser.parse_known_args()
    arguments.need_programs(PROGRAM.parent, PROGRAM.name)
    ways = {"one worker": ["--workers", 1, "--cpu-threads", options.threads],
            "one per thread": ["--workers", options.threads, "--cpu-threads", 1],
            "auto": ["--cpu-threads", options.threads]}
    print(f"{options.threads} threads, sentences per second")
    print("| precision | beam | batch | one worker | one per thread | ratio | auto | ratio | MB, "
          "one worker | MB, auto |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for precision in options.precisions:
        for beam in options.beams:
            for batch in options.batches:
                speeds, memory, outputs = {way: [] for way in ways}, {}, set()
                for _ in range(options.rounds):
                    for way, choice in ways.items():
                        out, speed, memory[way] = translate(options, "--precision", precision,
                                                            "-b", beam,
                                                            "--mini-batch", batch, *choice)
                        speeds[way].append(speed)
                        outputs.add(out)
                if len(outputs) != 1:
                    sys.exit("the outputs differ")
                one, each, auto = (statistics.median(speeds[way]) for way in ways)
                print(f"| {precision} | {beam} | {batch} | {one:.0f} | {each:.0f} | "
                      f"{each / one:.2f} | {auto:.0f} | {auto / one:.2f} "
                      f"| {memory['one worker']:.1f} | {memory['auto']:.1f} |", flush=True)


if __name__ == "__main__":
    arguments.call(main)
