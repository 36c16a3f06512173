"""Implementation of gpu_check.sh, which describes the usage. Exit status: 0 finished without a
failure, 1 something failed, 2 wrong usage, 3 the time of a part is over: the same command again
continues it."""
import argparse
import datetime
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "gpu"))
import libraries  # noqa: E402
import parts  # noqa: E402
import report  # noqa: E402
import tools  # noqa: E402
from common import arguments  # noqa: E402
from runner import OutOfTime, Runner  # noqa: E402
from state import Refused, State  # noqa: E402

UNFINISHED = 3


class Check:
    """One call: a part, its state and the programs."""

    def __init__(self, options, part):
        self.options, self.build = options, options.build.resolve()
        self.state = State(options.out, part).load(options.previous)
        self.state.load()  # of an earlier call with this --out
        self.runner = Runner(dict(os.environ), options.limit)
        self.emulated_bin = self.build / "bin/emulated"
        self.refusals = {}  # of tools.why_not()

    def program(self, name):
        """The emulator's program, or that of the build."""
        emulated = self.emulated_bin / name
        return (emulated if self.options.emulated and emulated.exists()
                else self.build / "bin" / name)

    def tool(self, name):
        """ncu or compute-sanitizer, or None."""
        if self.options.tools:
            return shutil.which(name, path=str(self.options.tools))
        if self.options.emulated:
            return None  # they need a GPU
        return tools.find(name)

    def machine(self):
        """Describes the device and the libraries in the report."""
        run = self.runner.run
        train = self.program("nmt-train")
        if not train.exists():
            raise Refused(f"{self.build}: there is no bin/nmt-train")
        version = run([train, "--build-info"], 60)
        if version.status != 0:
            raise Refused(f"{train}: does not start: {version.text.strip()}")
        found = re.search(r"CUDA: .*?(\d+)\.\d+", version.text)
        if not found:
            raise Refused(f"{self.build}: a build without the CUDA backend")
        there = libraries.Libraries(self.build, int(found[1]))
        self.runner.env["LD_LIBRARY_PATH"] = there.path
        first = run([self.program("nmt-score"), "--device", "cuda", "-m", "/nonexistent", __file__,
                     __file__], 120).text.strip().splitlines()
        log = first[0] if first else "the programs do not start"
        smi = run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total",
                   "--format=csv,noheader"], 60)
        device = ("the emulator: no GPU has run any of this" if "emulator" in log
                  else smi.text.strip().splitlines()[0] if smi.status == 0 and smi.text.strip()
                  else "unknown")
        machine = {"device": device, "log": log, "version": version.text.strip(),
                   "libraries": there.found}
        if self.options.without_gpu:
            machine["device"] = ""
        elif " on cuda:" not in log:
            raise Refused(f"there is no GPU to test: {log.removeprefix('error: device=cuda: ')}")
        elif "emulator" in log and not self.options.emulated:
            raise Refused("only the emulator is here; --emulated tries the procedure with it")
        elif there.missing() and "emulator" not in log:
            raise Refused(f"{', '.join(there.missing())} of CUDA {found[1]} not found in "
                          f"LD_LIBRARY_PATH, {self.build / 'lib'}, the Python packages of PyTorch, "
                          "the system's libraries or /usr/local/cuda")
        self.same_model(machine["device"])
        earlier = self.state.data["machine"].get("device", "")
        self.state.data["machine"] = {**machine, "device": machine["device"] or earlier}

    def same_model(self, device):
        """Refuses to continue the report of another GPU model. The driver may differ."""
        earlier = self.state.data["machine"].get("device", "")
        if earlier and device and earlier.split(",")[0] != device.split(",")[0]:
            raise Refused(f"{self.state.path}: begun on {earlier}, and this is {device}; "
                          "another --out without --previous begins a report of its own, "
                          "and --join takes both folders")

    def call(self):
        """Runs the part; the exit status."""
        state, status = self.state, UNFINISHED
        if self.options.again:
            for name in state.failures():
                del state.data["steps"][name]
        begin = datetime.datetime.now(datetime.timezone.utc)
        entry = {"begin": f"{begin:%Y-%m-%d %H:%M} UTC", "seconds": 0}
        try:
            self.machine()
            state.data["runs"].append(entry)
            state.write()
            parts.PARTS[state.data["part"]][1](self)
            state.data["finished"] = not self.options.without_gpu
            status = 1 if state.failures() else 0
        except OutOfTime:
            state.data["finished"] = False
        finally:
            entry["seconds"] = round(self.runner.used(), 1)
            if entry in state.data["runs"]:
                state.write()
            self.runner.close()
        left = ("" if status != UNFINISHED
                else "; the time is over: the same command again continues")
        print(f"part {state.data['part']}: {len(state.failures())} failures, "
              f"{entry['seconds']:.0f} s{left}", flush=True)
        return status


def join(folders, page):
    text, good = report.page(folders)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    print(f"{page}: written")
    return 0 if good else 1


def options():
    parser = argparse.ArgumentParser(prog="gpu_check.sh",
                                     description="Tests and measures a build on a machine with a "
                                                 "GPU, in five parts.")
    parser.add_argument("build", type=arguments.folder, nargs="?",
                        help="build directory with bin/ and lib/")
    parser.add_argument("--join", nargs="+", type=pathlib.Path, metavar=("FOLDER", "PAGE"),
                        help="join the reports of folders to a page in Markdown: FOLDER... PAGE")
    parser.add_argument("--only", type=int, choices=sorted(parts.PARTS),
                        help="one part (default: all)")
    parser.add_argument("--limit", type=arguments.number(0), default=0,
                        help="seconds of each part, after which it stops and can be continued "
                             "(default: none)")
    parser.add_argument("--out", type=arguments.new_folder, default=pathlib.Path("gpu-check"),
                        help="folder of the reports (%(default)s)")
    parser.add_argument("--previous", type=arguments.folder,
                        help="folder with the reports of earlier calls, if not --out")
    parser.add_argument("--data", type=arguments.folder,
                        help="a folder with Multi30k; data/multi30k in the build directory or "
                             "$NMT_DATA/multi30k when not given")
    parser.add_argument("--tools", type=arguments.folder,
                        help="folder with ncu and compute-sanitizer (default: the path, "
                             "/usr/local/cuda/bin and /opt/nvidia/nsight-compute)")
    parser.add_argument("--quick", action="store_true", help="fewer updates and shorter benchmarks")
    parser.add_argument("--updates", type=arguments.whole(), help="updates of each training")
    parser.add_argument("--again", action="store_true", help="repeat the steps that failed")
    parser.add_argument("--without-gpu",
                        action="store_true", help="run only the steps of part 4 that need no GPU, "
                                                  "ahead of the calls on a GPU")
    parser.add_argument("--emulated", action="store_true",
                        help="run on the emulator, without a GPU, in minutes")
    parser.add_argument("--all", action="store_true",
                        help="with --emulated: run all tests of kernels and models instead of a "
                             "selection")
    chosen = parser.parse_args()
    if bool(chosen.build) == bool(chosen.join):
        parser.error("give either a build directory or --join")
    if chosen.join and len(chosen.join) < 2:
        parser.error("--join: expected FOLDER... PAGE")
    if chosen.limit and chosen.limit < 10:
        parser.error(f"--limit {chosen.limit:g}: at least 10 seconds are needed")
    if chosen.without_gpu and chosen.only != 4:
        parser.error("--without-gpu needs --only 4: the other parts need a GPU")
    return chosen


def main():
    chosen = options()
    try:
        if chosen.join:
            return join(chosen.join[:-1], chosen.join[-1])
        statuses = [Check(chosen, part).call()
                    for part in ([chosen.only] if chosen.only else parts.PARTS)]
        if any(chosen.out.glob("part-*.json")):  # none where the time was over at once
            join([chosen.out], chosen.out / "report.md")
        return UNFINISHED if UNFINISHED in statuses else max(statuses)
    except Refused as error:
        print(f"gpu_check.sh: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    arguments.call(main)
