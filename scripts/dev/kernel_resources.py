#!/usr/bin/env python3
"""Prints what ptxas gives each CUDA kernel: registers per thread, stack and spills in bytes, and
shared memory, for each GPU generation asked for.

    scripts/dev/kernel_resources.py build               # sm_90, all kernels, most registers first
    scripts/dev/kernel_resources.py build --arch 75 80 120 --spills

The flags are those of build/compile_commands.json, so a configured build with CUDA is needed. With
--spills the output has only the kernels that spill, and the exit status is 1 if there are any. The
build itself refuses a spill: cuda/CMakeLists.txt gives ptxas -warn-spills -Werror."""
import argparse
import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from common import arguments  # noqa: E402

FUNCTION = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)\w*'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=arguments.folder,
                        help="folder of a configured build with CUDA")
    parser.add_argument("--arch", type=arguments.whole(), nargs="+", default=[90],
                        help="generations (%(default)s)")
    parser.add_argument("--spills", action="store_true",
                        help="only kernels that spill; exit status 1 if there are any")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--jobs", type=arguments.whole(), default=2,
                        help="compilers at a time (%(default)s)")
    return parser.parse_args()


def resources(command, file, arch):
    """Rows (file, arch, kernel, registers, stack, stores, loads, shared) of one file."""
    words, kept, skip = shlex.split(command), [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-MF", "-MT"):
            skip = True
        elif not word.startswith("--generate-code") and word not in (
                "-MD", "-Xptxas=-warn-spills,-Werror"):
            kept.append(word)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*kept, "-cubin", f"-arch=sm_{arch}", "-Xptxas=-v", file,
                               "-o", f"{folder}/kernels.cubin"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{file}: {done.stderr.strip()}")
    rows, name, frame = [], None, None
    for line in done.stderr.splitlines():
        if match := FUNCTION.search(line):
            name = match[1]
        elif match := STACK.search(line):
            frame = [int(n) for n in match.groups()]
        elif name and (match := USED.search(line)):
            rows.append((file, arch, name, int(match[1]), *frame, int(match[2] or 0)))
            name = None
    return rows


def main():
    args = options()
    database = args.build / "compile_commands.json"
    if not database.exists():
        sys.exit(f"{database} does not exist: configure the build first")
    jobs = [(entry["command"], entry["file"])
            for entry in arguments.read_json(database) if entry["file"].endswith(".cu")
            and "nvcc" in entry["command"] and args.only in entry["file"]]
    if not jobs:
        sys.exit(f"{database} has no CUDA file"
                 + (f" with {args.only!r} in its path" if args.only else ""))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        parts = list(pool.map(lambda job: resources(*job),
                              [(*job, arch) for job in jobs for arch in args.arch]))
    rows = [row for part in parts for row in part]
    names = subprocess.run(["c++filt", "-p"], input="\n".join(row[2] for row in rows), check=True,
                           capture_output=True, text=True).stdout.splitlines()
    table = sorted(zip(rows, names),
                   key=lambda pair: (-pair[0][5] - pair[0][6], -pair[0][3], pair[1], pair[0][1]))
    spilling = [pair for pair in table if pair[0][5] or pair[0][6]]
    print("| file | sm | kernel | registers | stack | spill stores | spill loads | shared |\n"
          "|---|---|---|---|---|---|---|---|")
    for (file, arch, _, *numbers), name in spilling if args.spills else table:
        print(f"| {pathlib.Path(file).name} | {arch} | `{name}` | "
              + " | ".join(map(str, numbers)) + " |")
    print(f"\n{len(table)} kernels, {len(spilling)} spill", file=sys.stderr)
    return 1 if args.spills and spilling else 0


if __name__ == "__main__":
    arguments.call(main)
