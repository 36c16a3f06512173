#!/usr/bin/env python3
"""Trains recurrent units with the same data, settings, budget and seeds, and writes a table
and figures.

  scripts/bench/units/compare_units.py --config configs/multi30k.yaml --updates 2000 \\
      --work compare --train-sets train.en train.de --valid-sets val.en val.de \\
      --test-sets test2016.en test2016.de gru lrn gru:groups=4,rearrange=true overlay.yaml
  scripts/bench/units/compare_units.py --speed ...the same...

The second command measures the training and decoding speed of all units in turn, on a
quiet machine.

A unit is a name of units.def, optionally followed by a colon and options of nmt-train, or a YAML
file applied on top of --config. All units share one vocabulary. Finished trainings are kept and
interrupted ones are resumed: stop the script at any time (Ctrl-C, SIGTERM, kill -9) and run the
same command again. A unit that fails gets a row with the reason; the others continue, and the next
run retries it. With more --updates trainings go on, and with other --test-sets their models
translate again; with other training or development text, settings or vocabulary the script asks for
another --work. It compares the contents of the files, so --work and they can be moved.

With --equal-time UNIT all units train for the time in which UNIT computes --updates: the updates of
each are scaled by its speed in an earlier --speed in --work, so that other load on the machine
changes nothing. With --speed beside it, the decoding speed of these models is measured and the
training speeds stay. Trainings of --updates go on from there in a copy of their folder (cp -a
compare compare-time), unless they have more updates than they get; so take the slowest for UNIT.

Trainings end by --updates, --minutes or --until-converged alone: limits of --config (after,
max-minutes) do not count, nor does its early-stopping with --updates. With --until-converged each
training ends by the early stopping of --config: after that many validations without a better value.
More than one pair of --test-sets adds columns to the table.

The directory --work receives table.md, table.csv, PNG figures, vocab.spm, and a directory
for every unit and seed (model, train.log, hypothesis, result.json). Figures need
matplotlib, which is installed into .venv if it is missing. Programs are taken from
$NMT_BUILD/bin, else from build/bin."""
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import compare_arguments  # noqa: E402
import speed  # noqa: E402
import units_table  # noqa: E402
from common import arguments, inputs, system  # noqa: E402
from training_command import BIN, reason, say  # noqa: E402
from training_task import TrainingTask  # noqa: E402


def make_vocabulary(args):
    """Trains vocab.spm if it does not exist; returns whether its inputs are recorded."""
    vocabulary, record = args.work / "vocab.spm", args.work / "vocab.json"
    if args.vocabs:
        return True
    now = inputs.of_command(["--train-sets", *args.train_sets, "--pieces", args.pieces])
    if vocabulary.exists():
        names = inputs.changed(record, now)
        if names:
            inputs.refuse(vocabulary, names)
        return names is not None
    inputs.keep(record, now)
    made = args.work / "vocab.tmp.spm"
    with open(args.work / "vocab.log", "wb") as log:
        command = [BIN / "nmt-vocab", "train", *args.train_sets, "--size", str(args.pieces),
                   "--model", made]
        if subprocess.run(command, stdout=log, stderr=log).returncode != 0:
            sys.exit("compare_units.py: cannot train the vocabulary: "
                     f"{reason(args.work / 'vocab.log')}")
    made.rename(vocabulary)
    return True


def check_inputs(args, tasks):
    """Ends the script if the vocabulary or a model in --work was computed from other inputs."""
    try:
        unknown = [] if make_vocabulary(args) else ["vocab.spm"]
        unknown += [task.what() for task in tasks if not task.has_record()]
    except inputs.Changed as error:
        sys.exit(f"compare_units.py: {error}")
    if unknown:
        inputs.warn(f"{args.work}: {'; '.join(unknown)}")


def train_all(args, tasks):
    waiting = [task for task in tasks if not task.done()]
    if len(waiting) < len(tasks):
        say(f"{len(tasks) - len(waiting)} of {len(tasks)} trainings are done already")
    running = []
    try:
        while waiting or running:
            while waiting and len(running) < args.jobs:
                task = waiting.pop(0)
                say(f"{task.what()}: {task.action()}")
                task.begin()
                running.append(task)
            running = [task for task in running if not task.poll()]
            time.sleep(0.1)
    finally:  # on a signal the trainings save a checkpoint
        for task in running:
            task.process.terminate()
        for task in running:
            task.process.wait()


def main():
    args, units = compare_arguments.parse(__doc__)
    args.work.mkdir(parents=True, exist_ok=True)
    lock = open(args.work / ".lock", "w")
    # a training that outlives a killed script keeps the lock
    os.set_inheritable(lock.fileno(), True)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another run, or a training that one left, works in {args.work}: waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: sys.exit(128 + received))
    tasks = [TrainingTask(args, unit, seed) for seed in args.seeds for unit in units]
    if not args.speed:
        units_table.last_speed(args)  # a damaged file ends the script before the trainings
    check_inputs(args, tasks)
    if args.speed:
        speed.measure(args, units)
    else:
        train_all(args, tasks)
    rows = units_table.rows(BIN, args, units)
    units_table.write(args, rows, sys.argv)
    say(f"written: {args.work / 'table.md'}, table.csv")
    if not args.no_figures:
        units_table.draw(args, system.ROOT)
    sys.exit(1 if all(row["status"] != "ok" for row in rows) else 0)


if __name__ == "__main__":
    arguments.call(main)
