#!/usr/bin/env python3
"""Plants faults in the CUDA kernels, one at a time, and checks that the parity tests find each.

    scripts/dev/plant_faults.py                            # all faults of fault_table.py: hours
    scripts/dev/plant_faults.py --only residual_norm       # those whose names contain this
    scripts/dev/plant_faults.py --list

A fault is one change of a line. The script copies the source tree (tracked files, and new ones that
git does not ignore) to DIR/tree, builds cuda_emulated_tests in DIR/objects and runs the tests that
the table names, first without a fault. Then it changes the copy, builds and runs them again. The
user's tree is not written. Output is a Markdown table with the first test that fails, or NOT FOUND.
Exit status: 1 if a fault is not found or does not compile, or if a test fails without one."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from fault_table import FAULTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))
from common import arguments  # noqa: E402

PROGRAM = "cuda_emulated_tests"
CONFIGURATION = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DNMT_WITH_CUDA=EMULATED",
                 "-DNMT_PRECOMPILED_HEADERS=ON",
                 "-DNMT_ISA_LEVELS=x86-64-v3",
                 # A fault may leave a variable unused.
                 "-DCMAKE_CXX_FLAGS=-Wno-error=unused-parameter -Wno-error=unused-variable "
                 "-Wno-error=unused-but-set-variable"]


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=arguments.new_folder, default=ROOT / "build-faults",
                        metavar="DIR", help="folder of the copy and its build (%(default)s)")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME",
                        help="only faults whose name contains one of these")
    parser.add_argument("--list", action="store_true",
                        help="check that the texts occur once, and print the faults")
    parser.add_argument("--jobs", type=arguments.whole(), default=2,
                        help="compilers at a time (%(default)s)")
    return parser.parse_args()


def problems(faults):
    """A message for each fault whose text is not in its file exactly once."""
    for fault in faults:
        path = ROOT / fault.file
        count = path.read_text().count(fault.text) if path.exists() else 0
        if count != 1:
            yield f"{fault.name}: its text occurs {count} times in {fault.file}, not once"


def copy_tree(to):
    """Makes `to` a copy of the source tree. Files with the same contents are not written, so that
    nothing is rebuilt."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], check=True, capture_output=True).stdout.decode()
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for path in to.rglob("*"):
        if path.is_file() and str(path.relative_to(to)) not in names:
            path.unlink()
    for name in names:
        source, target = ROOT / name, to / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


class Tests:
    def __init__(self, build, jobs):
        self.objects, self.jobs = build / "objects", jobs
        # Objects of a copy in another folder can be reused.
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(build), "GTEST_FAIL_FAST": "1"}
        self.command(["cmake", "-S", build / "tree", "-B", self.objects, *CONFIGURATION],
                     check=True)

    def command(self, words, **more):
        return subprocess.run([str(word) for word in words], env=self.environment,
                              capture_output=True, text=True, errors="replace", **more)

    def build(self):
        """"" or the compiler's message."""
        done = self.command(["cmake", "--build", self.objects, "--target", PROGRAM,
                             "-j", self.jobs])
        return done.stdout[-2000:] + done.stderr if done.returncode else ""

    def failure(self, tests, limit=None):
        """The first of these rows of the parity table that fails, or None; and the
        program's output."""
        try:
            done = self.command([self.objects / "bin" / PROGRAM,
                                 "--gtest_filter=" + ":".join(f"Table/*/{test}" for test in tests)],
                                timeout=limit)
        except subprocess.TimeoutExpired:
            return "no end", ""
        if f"[  PASSED  ] {len(tests)} test" in done.stdout and done.returncode == 0:
            return None, done.stdout
        started = re.findall(r"\[ RUN      \] \S*/(\w+)", done.stdout)
        failed = re.findall(r"\[  FAILED  \] \S*/(\w+)", done.stdout)
        return (failed or started[-1:] or ["none of them runs"])[0], done.stdout + done.stderr


def main():
    args = options()
    build = args.build.resolve()
    faults = [fault for fault in FAULTS if any(part in fault.name for part in args.only)]
    if not faults:
        sys.exit(f"no fault has {' or '.join(args.only)} in its name")
    if wrong := list(problems(faults)):
        sys.exit("\n".join(wrong))
    if args.list:
        for fault in faults:
            print(f"{fault.name}: {fault.breaks} ({fault.file}; {', '.join(fault.tests)})")
        return 0
    copy_tree(build / "tree")
    tests = Tests(build, args.jobs)
    if message := tests.build():
        sys.exit(f"the tree without faults does not build:\n{message}")
    begin = time.monotonic()
    names = sorted({test for fault in faults for test in fault.tests})
    failed, output = tests.failure(names)
    if failed:
        sys.exit(f"{failed} fails without a fault:\n{output[-2000:]}")
    limit = 60 + 10 * (time.monotonic() - begin)
    print("| fault | what is wrong | found by |\n|---|---|---|", flush=True)
    missed = 0
    for fault in faults:
        path = build / "tree" / fault.file
        original = path.read_text()
        path.write_text(original.replace(fault.text, fault.replacement))
        try:
            if message := tests.build():
                print(f"{fault.name} does not compile:\n{message}", file=sys.stderr)
                found = "DOES NOT COMPILE"
            else:
                found, _ = tests.failure(fault.tests, limit)
        finally:
            path.write_text(original)
        missed += found is None or found == "DOES NOT COMPILE"
        print(f"| {fault.name} | {fault.breaks} | {f'`{found}`' if found else 'NOT FOUND'} |",
              flush=True)
    print(f"\n{len(faults)} faults, {len(faults) - missed} found", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    arguments.call(main)
