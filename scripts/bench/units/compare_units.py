#!/usr/bin/env python3
"""Trains recurrent units with the same data, settings, budget and seeds, and writes a table and figures.

  scripts/bench/units/compare_units.py --config configs/multi30k.yaml --updates 2000 --work compare --train-sets train.en train.de \\
      --valid-sets val.en val.de --test-sets test2016.en test2016.de gru lrn gru:groups=4,rearrange=true overlay.yaml
  scripts/bench/units/compare_units.py --speed ...the same...        # on a quiet machine: training and decoding speed of all units in turn

A unit is a name of units.def, optionally followed by a colon and options of nmt-train, or a YAML file
applied on top of --config. All units share one vocabulary. Finished trainings are kept and
interrupted ones are resumed: stop the script at any time (Ctrl-C, SIGTERM, kill -9) and run the same
command again. A unit that fails gets a row with the reason; the others continue, and the next run
retries it. With more --updates trainings go on, and with other --test-sets their models translate
again; with other training or development text, settings or vocabulary the script asks for another
--work. It compares the contents of the files, so --work and they can be moved.

With --equal-time UNIT all units train for the time in which UNIT computes --updates: the updates of each
are scaled by its speed in an earlier --speed in --work, so that other load on the machine changes nothing.
Trainings of --updates go on from there in a copy of their folder (cp -a compare compare-time), unless they
have more updates than they get; so take the slowest for UNIT.

Trainings end by --updates, --minutes or --until-converged alone: limits of --config (after, max-minutes)
do not count, nor does its early-stopping with --updates. With --until-converged each training ends by the
early stopping of --config: after that many validations without a better value. More than one pair of --test-sets adds columns to the table.

The directory --work receives table.md, table.csv, PNG figures, vocab.spm, and a directory for every
unit and seed (model, train.log, hypothesis, result.json). Figures need matplotlib, which is installed
into .venv if it is missing.
Programs are taken from $NMT_BUILD/bin, else from build/bin."""
import argparse
import ctypes
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import units_table  # noqa: E402
from common import arguments, inputs, system  # noqa: E402

BIN = system.programs()
NEVER = "1000000000u"
# Options of nmt-train that do not decide what an update computes.
BUDGET = ("--model", "--cpu-threads", "--after", "--max-minutes", "--early-stopping")


class Unit:
    """One row: a name of units.def with options, or a YAML overlay."""

    def __init__(self, item):
        self.item, self.is_file = item, item.endswith((".yaml", ".yml"))
        if self.is_file:
            self.arguments = ["--config", str(pathlib.Path(item).resolve())]
            self.name = pathlib.Path(item).stem
        else:
            name, _, options = item.partition(":")
            self.arguments = ["--unit", name]
            for option in filter(None, options.split(",")):
                key, equals, value = option.partition("=")
                if not key or not equals:
                    sys.exit(f"compare_units.py: unit '{item}': '{option}' is not of the form option=value")
                self.arguments.append(f"--{key}={value}")
            self.name = item
        self.folder = re.sub(r"[^\w.-]+", "_", self.name)


def die_with_parent():
    """Runs in the child: requests SIGTERM when this script is killed, so that no training is orphaned."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def reason(log):
    """The line of a program's log with its error."""
    return arguments.reason(log.read_text(encoding="utf-8", errors="replace"))


class Task:
    """One training, followed by the translation of the test set: one process at a time, started and
    polled by the main loop."""

    def __init__(self, args, unit, seed):
        self.args, self.unit, self.seed = args, unit, seed
        self.folder = args.work / unit.folder / f"seed-{seed}"
        self.model, self.result_file = self.folder / "model", self.folder / "result.json"
        self.hypotheses = [self.folder / units_table.hypothesis(test) for test in range(len(args.tests))]
        self.command = train_command(args, unit, self.model, seed)
        self.budget = budget(args, unit)
        self.steps, self.process = None, None

    def what(self):
        return f"{self.unit.name}, seed {self.seed}"

    def inputs(self):
        return inputs.of_command(self.command, without=BUDGET)

    def begun(self):
        return (self.model / "latest").exists() or self.result().get("status") == "ok"

    def has_record(self):
        """Whether the inputs of what exists are recorded. Raises Changed if they differ from those of now."""
        names = inputs.changed(self.folder / "inputs.json", self.inputs()) if self.begun() else []
        if names:
            inputs.refuse(self.folder, names)
        return names is not None

    def result(self):
        try:
            found = json.loads(self.result_file.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def trained(self, result):
        """Whether the training has finished with this budget."""
        if result.get("status") != "ok":
            return False
        if "budget" in result:
            return result["budget"] == self.budget
        # Of an older version, which did not lift the limits of --config.
        limit = updates_of(self.args, self.unit)
        older = [*self.command[: -len(self.budget)], *(self.budget if self.args.minutes else self.budget[:2])]
        return result["command"] in (self.command, older) and limit in (None, result["updates"])

    def to_translate(self, result):
        return [test for test in range(len(self.args.tests)) if not units_table.is_translated(self.args, self.folder, result, test)]

    def done(self):
        result = self.result()
        return self.trained(result) and not self.to_translate(result)

    def action(self):
        return "translates" if self.trained(self.result()) else "goes on" if (self.model / "latest").exists() else "starts"

    def begin(self):
        if not self.begun():
            self.folder.mkdir(parents=True, exist_ok=True)
            inputs.keep(self.folder / "inputs.json", self.inputs())
        result = self.result()
        trained = self.trained(result)
        tests = self.to_translate(result) if trained else range(len(self.args.tests))
        for path in (self.result_file, *(self.hypotheses[test] for test in tests)):
            path.unlink(missing_ok=True)
        self.steps = [] if trained else [("train.log", [BIN / "nmt-train", *self.command])]
        for test in tests:
            self.steps.append(("translate.log", [BIN / "nmt-translate", "-m", self.model, "-i", self.args.tests[test][0], "-o", self.hypotheses[test], "--cpu-threads", self.args.threads]))
        self.next()

    def next(self):
        name, command = self.steps.pop(0)
        self.log = self.folder / name
        with open(self.log, "ab" if name == "train.log" else "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, close_fds=False, start_new_session=True,
                                            preexec_fn=die_with_parent)  # fmt: skip

    def poll(self):
        """Whether training and translation have finished."""
        status = self.process.poll()
        if status is None:
            return False
        if status != 0:
            self.finish({"status": "failed", "why": f"{self.log.stem}: status {status}: {reason(self.log)}"})
        elif self.steps:
            self.next()
            return False
        else:
            result = units_table.read_training(BIN, self.model, self.folder / "train.log")
            limit, updates = updates_of(self.args, self.unit), result["updates"] or 0
            if limit and updates > limit:
                result = {"why": f"has {updates} updates from an earlier run, more than the {limit} asked for: take another --work"}
            elif limit and updates < limit:
                result = {"why": f"ended after {updates} of {limit} updates: see {self.folder / 'train.log'}"}
            self.finish({"status": "failed" if "why" in result else "ok", **result})
        return True

    def finish(self, result):
        made_from = {"command": self.command, "budget": self.budget, "tests": self.args.test_digests}
        units_table.write_whole(self.result_file, json.dumps({**result, "unit": self.unit.name, "seed": self.seed, **made_from}, indent=1) + "\n")
        say(f"{self.what()}: {result['status']}" + (f": {result['why']}" if "why" in result else ""))


def say(text):
    print(time.strftime("%H:%M:%S ") + text, flush=True)


def updates_of(args, unit):
    """The updates of a training; None if it has another limit."""
    if not args.equal_time:
        return args.updates
    return round(args.updates * args.speeds[unit.name] / args.speeds[args.equal_time])


def train_command(args, unit, model, seed, after=None):
    command = []
    for config in args.config:
        command += ["--config", str(pathlib.Path(config).resolve())]
    command += unit.arguments + ["--train-sets", *args.train_sets, "--vocabs", str(args.vocabs or args.work / "vocab.spm"), "--model", str(model)]
    command += ["--valid-sets", *args.valid_sets] if args.valid_sets else []
    command += ["--seed", str(seed), "--cpu-threads", str(args.threads)]
    return command + budget(args, unit, after)


def budget(args, unit, after=None):
    """Options of nmt-train that end a training."""
    after = after or updates_of(args, unit)
    if after:
        return ["--after", f"{after}u", "--max-minutes", "0", "--early-stopping", "0"]
    if args.until_converged:
        return ["--after", "0", "--max-minutes", "0"]
    return ["--after", "0", "--max-minutes", str(args.minutes)]


def inputs_of_unit(args, unit):
    """What decides the speed of a unit, except the machine."""
    own_vocabulary = [] if args.vocabs else ["--vocabs"]  # which may not exist yet
    return inputs.of_command(train_command(args, unit, "", 1, after=1), without=(*BUDGET, "--seed", *own_vocabulary))


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
        command = [BIN / "nmt-vocab", "train", *args.train_sets, "--size", str(args.pieces), "--model", made]
        if subprocess.run(command, stdout=log, stderr=log).returncode != 0:
            sys.exit(f"compare_units.py: cannot train the vocabulary: {reason(args.work / 'vocab.log')}")
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


def decode_speed(args, model, batch, source):
    """Milliseconds reported by nmt-translate, without loading: CPU time with one thread, else wall time."""
    command = [BIN / "nmt-translate", "-m", model, "-i", source, "-o", args.work / "speed.hyp", "--cpu-threads", args.threads, "--mini-batch", batch]
    log = args.work / "speed.log"
    with open(log, "wb") as out:
        status = subprocess.run([str(word) for word in command], stdout=out, stderr=out, preexec_fn=die_with_parent).returncode
    if status != 0:
        raise RuntimeError(f"status {status}: {reason(log)}")
    wall, processor = re.search(r"lines? in ([\d.]+) s \(([\d.]+) s of CPU time\)", log.read_text(encoding="utf-8", errors="replace")).groups()
    return 1000 * float(processor if args.threads == 1 else wall)


def train_speed(args, unit):
    """Target tokens per second over the second half of a short training: CPU time with one thread, else
    wall time."""
    model, log = args.work / "speed-model", args.work / "speed.log"
    shutil.rmtree(model, ignore_errors=True)
    half = max(1, args.speed_updates // 2)
    command = [BIN / "nmt-train", *train_command(args, unit, model, 1, after=2 * half), "--disp-freq", f"{half}u", "--valid-freq", NEVER, "--save-freq", NEVER,
               "--valid-metrics", "cross-entropy", "--valid-max-sentences", "1"]  # fmt: skip
    marks, shown = [], 0  # CPU time at each progress line, and their number
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out, preexec_fn=die_with_parent)
    while process.poll() is None:
        if shown < 2 and (model / "train.jsonl").exists():
            now = system.cpu_seconds(process.pid)
            before, shown = shown, (model / "train.jsonl").read_text(encoding="utf-8").count('"event":"display"')
            if shown == before + 1:
                marks.append(now)
        time.sleep(0.001)
    if process.returncode != 0:
        raise RuntimeError(f"status {process.returncode}: {reason(log)}")
    displays = units_table.events(model, "display")
    shutil.rmtree(model)
    if args.threads > 1:
        return displays[-1]["target_tokens_per_second"]
    if len(marks) < 2 or marks[1] - marks[0] < 0.02:  # some ticks of the scheduler (system.cpu_seconds)
        raise RuntimeError("the timed half of a training is too short to measure its CPU time: give more --speed-updates")
    return (displays[1]["labels"] - displays[0]["labels"]) / (marks[1] - marks[0])


def measure_speed(args, units):
    """Measures all units in alternation over several rounds, so that other load affects all equally; the
    table has the medians."""
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
                mine["tokens"].append(train_speed(args, unit))
                model = args.work / unit.folder / f"seed-{args.seeds[0]}" / "model"
                if (model / "latest").exists():
                    for key, batch in (("ms_1", 1), ("ms_batch", 64)):
                        mine[key].append(decode_speed(args, model, batch, source) / sentences)
            except RuntimeError as error:
                mine["why"] = str(error)
            say(f"round {round_number}, {unit.name}: " + (mine.get("why") or f"{mine['tokens'][-1]:.0f} target tokens/s"))
    result = {name: {k: v if k == "why" else statistics.median(v) for k, v in mine.items() if v} for name, mine in figures.items()}
    conditions = {"rounds": args.rounds, "updates": args.speed_updates, "threads": args.threads, "date": time.strftime("%Y-%m-%d %H:%M"),
                  "load": os.getloadavg()[1]}  # fmt: skip
    units_table.write_whole(args.work / "speed.json", json.dumps({"units": result, "all": figures, "conditions": conditions, "inputs": args.speed_inputs}, indent=1) + "\n")


def count_lines(path):
    with open(path, "rb") as file:
        lines = sum(1 for _ in file)
    if lines == 0:
        arguments.fail(f"{path}: has no text")
    return lines


def speeds_of(args, parser):
    """Target tokens per second of each unit, from an earlier --speed."""
    if not (args.work / "speed.json").exists():
        parser.error(f"--equal-time: no speed.json in {args.work}; run the same command with --speed first")
    measured = units_table.speeds(args)
    for name in [*(Unit(item).name for item in args.units), args.equal_time]:
        if "tokens" not in measured.get(name, {}):
            parser.error(f"--equal-time: no speed of {name} in {args.work / 'speed.json'}; run the same command with --speed first")
    return {name: figures["tokens"] for name, figures in measured.items() if "tokens" in figures}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole = arguments.whole()
    parser.add_argument("units", nargs="+", metavar="UNIT", help="gru, lrn:activation=identity, gru:groups=4,rearrange=true, overlay.yaml ...")
    parser.add_argument("--work", required=True, type=arguments.new_folder, metavar="DIR", help="output directory; an interrupted run resumes from it")
    parser.add_argument("-c", "--config", action="append", default=[], type=arguments.file, metavar="FILE", help="settings of nmt-train for all units (repeatable)")
    for name, required in (("train", True), ("valid", False)):
        parser.add_argument(f"--{name}-sets", nargs=2, required=required, type=arguments.file, metavar=("SRC", "TRG"))
    parser.add_argument("--test-sets", nargs=2, required=True, action="append", type=arguments.file, metavar=("SRC", "TRG"), help="repeatable; the first decides")
    parser.add_argument("--vocabs", type=arguments.file, metavar="FILE", help="shared vocabulary (default: train a joint one)")
    parser.add_argument("--pieces", type=whole, default=4000, help="size of the trained vocabulary (%(default)s)")
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--updates", type=whole, help="updates of each training (2000 unless --minutes is given)")
    limits.add_argument("--minutes", type=arguments.number(above=0), help="wall time of each training instead; only fair on an idle machine with --jobs 1")
    limits.add_argument("--until-converged", action="store_true", help="train until the early stopping of --config")
    parser.add_argument("--equal-time", metavar="UNIT", help="scale --updates to the time in which UNIT computes them; needs an earlier --speed")
    parser.add_argument("--seeds", type=arguments.whole(0), nargs="+", default=[1], help="random seeds; every unit is trained once per seed (%(default)s)")
    parser.add_argument("--baseline", metavar="UNIT", help="reference of p-values and ratios, one of the units (gru)")
    parser.add_argument("--jobs", type=whole, default=1, help="concurrent trainings (%(default)s)")
    parser.add_argument("--threads", type=whole, default=1, help="threads of each program (%(default)s)")
    parser.add_argument("--speed", action="store_true", help="measure speed instead of training, then rewrite the table")
    parser.add_argument("--rounds", type=whole, default=3, help="rounds of --speed (%(default)s)")
    parser.add_argument("--speed-updates", type=whole, default=40, help="updates per round; the second half is timed (%(default)s)")
    parser.add_argument("--speed-sentences", type=whole, default=200, help="test sentences decoded per round (%(default)s)")
    parser.add_argument("--no-figures", action="store_true", help="write only the table")
    args = parser.parse_args()
    if not args.updates and not args.minutes and not args.until_converged:
        args.updates = 2000
    args.work = args.work.resolve()
    if args.until_converged and not args.valid_sets:
        parser.error("--until-converged needs --valid-sets")
    if len(set(args.seeds)) < len(args.seeds):
        parser.error(f"--seeds: {' '.join(map(str, args.seeds))}: a seed is given twice")

    def whole_paths(files):
        """Both sides of a text, which have equal numbers of lines."""
        arguments.check_lengths(*((file, count_lines(file)) for file in files))
        return [str(file.resolve()) for file in files]

    args.train_sets, args.valid_sets = whole_paths(args.train_sets), args.valid_sets and whole_paths(args.valid_sets)
    args.tests = [whole_paths(pair) for pair in args.test_sets]
    args.test_digests = [inputs.digest(source) for source, _ in args.tests]
    args.vocabs = args.vocabs and args.vocabs.resolve()
    units = [Unit(item) for item in args.units]
    twice = {unit.folder for unit in units if sum(other.folder == unit.folder for other in units) > 1}
    if twice:
        parser.error(f"units: {', '.join(sorted(twice))} is given twice")
    arguments.need(parser, "units", *(unit.item for unit in units if unit.is_file))
    if args.baseline is None:
        args.baseline = "gru"
    elif (name := Unit(args.baseline).name) in (names := [unit.name for unit in units]):
        args.baseline = name
    else:
        parser.error(f"--baseline: '{args.baseline}' is none of the units: {', '.join(names)}")
    args.speed_inputs = {unit.name: inputs_of_unit(args, unit) for unit in [*units, *([Unit(args.equal_time)] if args.equal_time else [])]}
    if args.equal_time:
        if not args.updates:
            parser.error("--equal-time needs --updates")
        args.equal_time = Unit(args.equal_time).name
        args.speeds = speeds_of(args, parser)
    args.budgets = {unit.name: budget(args, unit) for unit in units}
    arguments.need_programs(BIN, "nmt-train", "nmt-vocab", "nmt-translate", "nmt-bleu")
    return args, units


def main():
    args, units = parse()
    args.work.mkdir(parents=True, exist_ok=True)
    lock = open(args.work / ".lock", "w")
    os.set_inheritable(lock.fileno(), True)  # a training that outlives a killed script keeps the lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another run, or a training that one left, works in {args.work}: waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: sys.exit(128 + received))
    tasks = [Task(args, unit, seed) for seed in args.seeds for unit in units]
    if not args.speed:
        units_table.last_speed(args)  # a damaged file ends the script before the trainings
    check_inputs(args, tasks)
    if args.speed:
        measure_speed(args, units)
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
