"""What scripts ask of the machine: the folder of the programs, the processor, seconds, and the
packages of Python."""
import importlib
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]


def programs():
    """The folder of the programs: $NMT_BUILD/bin, else build/bin of the repository."""
    return pathlib.Path(os.environ.get("NMT_BUILD") or ROOT / "build").resolve() / "bin"


def processor_facts():
    """What Linux says about the first processor."""
    try:
        first = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        return {}
    return dict(re.split(r"\s*:\s*", line, maxsplit=1)
                for line in first.splitlines() if ":" in line)


def processor_name():
    """The processor as tables name it: its model, or its architecture where Linux does not say."""
    return processor_facts().get("model name") or platform.machine()


def cpu_seconds(pid):
    """Of all threads of a process so far, as of the last tick of the scheduler (1 to 10 ms, by the
    kernel): /proc/PID/stat rounds to 10 ms besides. A process that has ended has the clock until
    its parent waits for it."""
    return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid() returns


class Clock:
    """Measures seconds: CPU time of this process with one CPU thread, else wall time with the GPU
    synchronized."""

    def __init__(self, args):
        self.device, self.alone = args.device, args.device == "cpu" and args.threads == 1

    def __call__(self):
        if self.device == "cuda":
            import torch

            torch.cuda.synchronize()
        return time.process_time() if self.alone else time.perf_counter()


def child_seconds(clock, command, **more):
    """Runs a program; returns its seconds, measured as by Clock, and its output."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(c) for c in command], check=True, capture_output=True,
                          text=True, **more)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - begin
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (used if clock.alone else wall), done.stdout


def ensure_packages(*names):
    """Re-executes the script in .venv with these packages if they are missing (default: torch,
    numpy, sentencepiece)."""
    names = names or ("torch", "numpy", "sentencepiece")
    try:
        for name in names:
            importlib.import_module(name)
    except ImportError as error:
        environment = ROOT / "scripts/dev/environment.sh"
        if os.environ.get("NMT_IN_VENV") or not environment.exists():
            sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
        made = subprocess.run(["bash", "-c", '. "$1" && shift && need_packages "$@"', sys.argv[0],
                               environment, ",".join(names), *names])
        if made.returncode != 0:
            sys.exit(made.returncode)
        python = ROOT / ".venv/bin/python"
        os.execve(python, [str(python), *sys.argv], {**os.environ, "NMT_IN_VENV": "1"})
