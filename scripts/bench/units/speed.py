"""The training and decoding speed of units, for compare_units.py --speed."""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import time

import units_table
from common import system
from training_command import BIN, die_with_parent, reason, say, train_command

NEVER = "1000000000u"


def decode_speed(args, model, batch, source):
    """Milliseconds reported by nmt-translate, without loading: CPU time with one thread,
    else wall time."""
    command = [BIN / "nmt-translate", "-m", model, "-i", source, "-o", args.work / "speed.hyp",
               "--cpu-threads", args.threads, "--mini-batch", batch]
    log = args.work / "speed.log"
    with open(log, "wb") as out:
        status = subprocess.run([str(word) for word in command], stdout=out, stderr=out,
                                preexec_fn=die_with_parent).returncode
    if status != 0:
        raise RuntimeError(f"status {status}: {reason(log)}")
    wall, processor = re.search(r"lines? in ([\d.]+) s \(([\d.]+) s of CPU time\)",
                                log.read_text(encoding="utf-8", errors="replace")).groups()
    return 1000 * float(processor if args.threads == 1 else wall)


def train_speed(args, unit):
    """Target tokens per second over the second half of a short training: CPU time with one thread,
    else wall time."""
    model, log = args.work / "speed-model", args.work / "speed.log"
    shutil.rmtree(model, ignore_errors=True)
    half = max(1, args.speed_updates // 2)
    command = [BIN / "nmt-train", *train_command(args, unit, model, 1, after=2 * half),
               "--disp-freq", f"{half}u", "--valid-freq", NEVER, "--save-freq", NEVER,
               "--valid-metrics", "cross-entropy", "--valid-max-sentences", "1"]
    marks, shown = [], 0  # CPU time at each progress line, and their number
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out,
                                   preexec_fn=die_with_parent)
    while process.poll() is None:
        if shown < 2 and (model / "train.jsonl").exists():
            now = system.cpu_seconds(process.pid)
            before, shown = shown, (model / "train.jsonl").read_text(encoding="utf-8").count(
                '"event":"display"')
            if shown == before + 1:
                marks.append(now)
        time.sleep(0.001)
    if process.returncode != 0:
        raise RuntimeError(f"status {process.returncode}: {reason(log)}")
    displays = units_table.events(model, "display")
    shutil.rmtree(model)
    if args.threads > 1:
        return displays[-1]["target_tokens_per_second"]
    # some ticks of the scheduler (system.cpu_seconds)
    if len(marks) < 2 or marks[1] - marks[0] < 0.02:
        raise RuntimeError("the timed half of a training is too short to measure its CPU time: "
                           "give more --speed-updates")
    return (displays[1]["labels"] - displays[0]["labels"]) / (marks[1] - marks[0])


def measure(args, units):
    """Measures all units in alternation over several rounds, so that other load affects all
    equally; the table has the medians. With --equal-time the training speeds are those that decided
    the updates."""
    source = args.work / "speed.source"
    lines = pathlib.Path(args.tests[0][0]).read_bytes().split(b"\n")[: args.speed_sentences]
    lines = [line for line in lines if line]
    source.write_bytes(b"\n".join(lines) + b"\n")
    sentences = len(lines)
    figures = {unit.name: {"tokens": [], "ms_1": [], "ms_batch": []} for unit in units}
    for round_number in range(1, args.rounds + 1):
        for unit in units:
            mine = figures[unit.name]
            if "why" in mine:
                continue
            try:
                mine["tokens"].append(args.speeds[unit.name] if args.equal_time
                                      else train_speed(args, unit))
                model = args.work / unit.folder / f"seed-{args.seeds[0]}" / "model"
                if (model / "latest").exists():
                    for key, batch in (("ms_1", 1), ("ms_batch", 64)):
                        mine[key].append(decode_speed(args, model, batch, source) / sentences)
            except RuntimeError as error:
                mine["why"] = str(error)
            say(f"round {round_number}, {unit.name}: "
                + (mine.get("why") or f"{mine['tokens'][-1]:.0f} target tokens/s"))
    result = {name: {k: v if k == "why" else statistics.median(v) for k, v in mine.items() if v}
              for name, mine in figures.items()}
    conditions = {"rounds": args.rounds, "updates": args.speed_updates, "threads": args.threads,
                  "date": time.strftime("%Y-%m-%d %H:%M"), "load": os.getloadavg()[1]}
    units_table.write_whole(args.work / "speed.json",
                            json.dumps({"units": result, "all": figures, "conditions": conditions,
                                        "inputs": args.speed_inputs}, indent=1) + "\n")
