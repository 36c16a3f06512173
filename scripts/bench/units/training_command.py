"""What the modules of compare_units.py share: a row of the table, the commands that train it, and
the output of the script."""
import ctypes
import pathlib
import re
import signal
import sys
import time

from common import arguments, inputs, system

BIN = system.programs()
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
                    sys.exit(f"compare_units.py: unit '{item}': '{option}' is not of the form "
                             "option=value")
                self.arguments.append(f"--{key}={value}")
            self.name = item
        self.folder = re.sub(r"[^\w.-]+", "_", self.name)


def die_with_parent():
    """Runs in the child: requests SIGTERM when this script is killed, so that no training
    is orphaned."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def reason(log):
    """The line of a program's log with its error."""
    return arguments.reason(log.read_text(encoding="utf-8", errors="replace"))


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
    command += unit.arguments + ["--train-sets", *args.train_sets,
                                 "--vocabs", str(args.vocabs or args.work / "vocab.spm"),
                                 "--model", str(model)]
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
    return inputs.of_command(train_command(args, unit, "", 1, after=1),
                             without=(*BUDGET, "--seed", *own_vocabulary))
