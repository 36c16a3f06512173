"""The command line of compare_units.py."""
import argparse

import units_table
from common import arguments, inputs
from training_command import BIN, Unit, budget, inputs_of_unit


def count_lines(path):
    with open(path, "rb") as file:
        lines = sum(1 for _ in file)
    if lines == 0:
        arguments.fail(f"{path}: has no text")
    return lines


def speeds_of(args, parser):
    """Target tokens per second of each unit, from an earlier --speed."""
    if not (args.work / "speed.json").exists():
        parser.error(f"--equal-time: no speed.json in {args.work}; run the same command with "
                     "--speed first")
    measured = units_table.speeds(args)
    for name in [*(Unit(item).name for item in args.units), args.equal_time]:
        if "tokens" not in measured.get(name, {}):
            parser.error(f"--equal-time: no speed of {name} in {args.work / 'speed.json'}; "
                         "run the same command with --speed first")
    return {name: figures["tokens"] for name, figures in measured.items() if "tokens" in figures}


def parse(description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    whole = arguments.whole()
    parser.add_argument("units", nargs="+", metavar="UNIT",
                        help="gru, lrn:activation=identity, gru:groups=4,rearrange=true, "
                             "overlay.yaml ...")
    parser.add_argument("--work", required=True, type=arguments.new_folder, metavar="DIR",
                        help="output directory; an interrupted run resumes from it")
    parser.add_argument("-c", "--config", action="append", default=[], type=arguments.file,
                        metavar="FILE", help="settings of nmt-train for all units (repeatable)")
    for name, required in (("train", True), ("valid", False)):
        parser.add_argument(f"--{name}-sets", nargs=2, required=required, type=arguments.file,
                            metavar=("SRC", "TRG"))
    parser.add_argument("--test-sets", nargs=2, required=True, action="append", type=arguments.file,
                        metavar=("SRC", "TRG"), help="repeatable; the first decides")
    parser.add_argument("--vocabs", type=arguments.file, metavar="FILE",
                        help="shared vocabulary (default: train a joint one)")
    parser.add_argument("--pieces", type=whole, default=4000,
                        help="size of the trained vocabulary (%(default)s)")
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--updates", type=whole,
                        help="updates of each training (2000 unless --minutes is given)")
    limits.add_argument("--minutes", type=arguments.number(above=0),
                        help="wall time of each training instead; only fair on an idle machine "
                             "with --jobs 1")
    limits.add_argument("--until-converged", action="store_true",
                        help="train until the early stopping of --config")
    parser.add_argument("--equal-time", metavar="UNIT",
                        help="scale --updates to the time in which UNIT computes them; "
                             "needs an earlier --speed")
    parser.add_argument("--seeds", type=arguments.whole(0), nargs="+", default=[1],
                        help="random seeds; every unit is trained once per seed (%(default)s)")
    parser.add_argument("--baseline", metavar="UNIT",
                        help="reference of p-values and ratios, one of the units (gru)")
    parser.add_argument("--jobs", type=whole, default=1, help="concurrent trainings (%(default)s)")
    parser.add_argument("--threads", type=whole, default=1,
                        help="threads of each program (%(default)s)")
    parser.add_argument("--speed", action="store_true",
                        help="measure speed instead of training, then rewrite the table")
    parser.add_argument("--rounds", type=whole, default=3, help="rounds of --speed (%(default)s)")
    parser.add_argument("--speed-updates", type=whole, default=40,
                        help="updates per round; the second half is timed (%(default)s)")
    parser.add_argument("--speed-sentences", type=whole, default=200,
                        help="test sentences decoded per round (%(default)s)")
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

    args.train_sets, args.valid_sets = (whole_paths(args.train_sets),
                                        args.valid_sets and whole_paths(args.valid_sets))
    args.tests = [whole_paths(pair) for pair in args.test_sets]
    args.test_digests = [inputs.digest(source) for source, _ in args.tests]
    args.vocabs = args.vocabs and args.vocabs.resolve()
    units = [Unit(item) for item in args.units]
    twice = {unit.folder
             for unit in units if sum(other.folder == unit.folder for other in units) > 1}
    if twice:
        parser.error(f"units: {', '.join(sorted(twice))} is given twice")
    arguments.need(parser, "units", *(unit.item for unit in units if unit.is_file))
    if args.baseline is None:
        args.baseline = "gru"
    elif (name := Unit(args.baseline).name) in (names := [unit.name for unit in units]):
        args.baseline = name
    else:
        parser.error(f"--baseline: '{args.baseline}' is none of the units: {', '.join(names)}")
    measured = list(units)
    if args.equal_time and Unit(args.equal_time).name not in (unit.name for unit in units):
        measured.append(Unit(args.equal_time))
    args.speed_inputs = {unit.name: inputs_of_unit(args, unit) for unit in measured}
    if args.equal_time:
        if not args.updates:
            parser.error("--equal-time needs --updates")
        args.equal_time = Unit(args.equal_time).name
        args.speeds = speeds_of(args, parser)
    args.budgets = {unit.name: budget(args, unit) for unit in units}
    arguments.need_programs(BIN, "nmt-train", "nmt-vocab", "nmt-translate", "nmt-bleu")
    return args, units
