"""Trainings of several units and seeds, for the scripts of this folder."""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts/bench"))
from common import arguments, inputs  # noqa: E402


def parser(description, units):
    """Of the arguments that the scripts share."""
    result = argparse.ArgumentParser(description=description.splitlines()[0],
                                     epilog="Options after -- go to nmt-train.")
    result.add_argument("train", type=arguments.file)
    result.add_argument("valid", type=arguments.file)
    result.add_argument("--units", nargs="+", default=units)
    result.add_argument("--seeds", nargs="+", type=arguments.whole(0), default=[1])
    result.add_argument("--jobs", type=arguments.whole(), default=1,
                        help="trainings side by side (%(default)s)")
    result.add_argument("--programs", type=arguments.folder, default=ROOT / "build/bin")
    result.add_argument("--work", type=arguments.new_folder, required=True,
                        help="folder of the models and logs; complete trainings are kept, "
                             "other options need another folder")
    return result


def parse(parser):
    """The arguments before --, and the options of nmt-train after it."""
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:end])
    for name in ("units", "networks", "seeds"):
        given = getattr(args, name, ())
        if len(set(given)) < len(given):
            parser.error(f"--{name}: {' '.join(map(str, given))}: one is given twice")
    arguments.need_programs(args.programs, "nmt-train")
    args.work.mkdir(parents=True, exist_ok=True)
    return args, words[end + 1:]


def train(args, name, options):
    """Trains args.work/name unless it is complete; returns the model and its log. A model of other
    options or texts is an error."""
    model, log = args.work / name, args.work / f"{name}.log"
    command = [args.programs / "nmt-train", args.train, "--valid-sets", args.valid,
               "--model", model, *options]
    inputs.reuse(args.work / f"{name}.json",
                 inputs.of_command(command[1:], without=("--model", "--cpu-threads")), model)
    if not log.exists() or "training is over" not in log.read_text():
        with log.open("w") as file:
            status = subprocess.run(command, stderr=file, stdout=file).returncode
        if status != 0:
            last = (log.read_text().strip().splitlines() or ["no output"])[-1]
            raise RuntimeError(f"a training failed with status {status}: {log}: {last}")
    return model, log.read_text()


def run(args, call, keys):
    """call(key) for every key, args.jobs at a time: futures by key."""
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    return {key: pool.submit(call, key) for key in keys}


def results(futures, keys):
    """The results of these keys. A call that failed ends the script."""
    try:
        return [futures[key].result() for key in keys]
    except Exception as error:
        for future in futures.values():
            future.cancel()
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
