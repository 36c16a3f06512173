#!/usr/bin/env python3
"""Compares the registers and the stack of every built CUDA kernel with cuda/registers.txt.

    scripts/dev/kernel_registers.py build            # one line per violation, then exit status 1
    scripts/dev/kernel_registers.py build --update   # writes the table anew

A row is a file of cuda/, a kernel, and the largest number of registers of its template instances,
rounded up to a multiple of 8, the unit in which a GPU gives registers to a thread. A third number
is the stack in bytes; without it, a kernel has none. A row with template arguments has a budget for
one instance. --update keeps such rows; add them by hand. The numbers are read from the objects of
the build, so nothing is compiled. They depend on compiler and architecture, which the first line of
the table names; for others the exit status is 77."""
import argparse
import pathlib
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from common import arguments  # noqa: E402

FAT_BINARY = struct.pack("<I", 0xBA55ED50)
ELF_IMAGE = 2  # the kind of an entry of a fat binary
# a type of ELF sections; attributes in .nv.info
SYMBOLS, FRAME_SIZE, REGISTER_COUNT = 2, 0x11, 0x2F
UNIT = 8
SKIPPED = 77


def images(data, architecture):
    """The ELF images for one architecture in the bytes of an object or a library."""
    begin = data.find(FAT_BINARY)
    while begin >= 0:
        _, _, header, size = struct.unpack_from("<IHHQ", data, begin)
        entry, end = begin + header, begin + header + size
        while entry < end:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, entry)
            built_for, = struct.unpack_from("<I", data, entry + 28)
            image = data[entry + entry_header:entry + entry_header + entry_size]
            if kind == ELF_IMAGE and built_for == architecture:
                if not image.startswith(b"\x7fELF"):
                    sys.exit("the images are compressed: build without nvcc's -Xfatbin "
                             "-compress-all")
                yield image
            entry += entry_header + entry_size
        begin = data.find(FAT_BINARY, end)


def kernels(image):
    """(mangled name, registers, stack) of every kernel of an ELF image."""
    table, = struct.unpack_from("<Q", image, 40)
    width, count, names = struct.unpack_from("<HHH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + n * width) for n in range(count)]

    def text(strings, at):
        begin = sections[strings][4] + at
        return image[begin:image.index(b"\0", begin)].decode()

    named = {text(names, section[0]): section for section in sections}
    symbols = next(section for section in sections if section[1] == SYMBOLS)
    registers, stack = {}, {}
    at, end = named[".nv.info"][4], named[".nv.info"][4] + named[".nv.info"][5]
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", image, at)
        at += 4
        if form == 4:  # a value of `size` bytes follows
            if attribute in (FRAME_SIZE, REGISTER_COUNT):
                symbol, number = struct.unpack_from("<II", image, at)
                name = text(symbols[6],
                            struct.unpack_from("<I", image, symbols[4] + 24 * symbol)[0])
                (stack if attribute == FRAME_SIZE else registers)[name] = number
            at += size
    return [(name, registers[name], stack.get(name, 0))
            for name in (section[6:] for section in named if section.startswith(".text."))]


def short(name):
    """A demangled name without namespaces, result and the types of enumerators."""
    name = re.sub(r"\(anonymous namespace\)::", "", name)
    name = re.sub(r"\([\w:]+\)(?=\d)", "", name)
    name = re.sub(r"\b(?:\w+::)+(?=\w)", "", name)
    return re.sub(r" (?=>)", "", re.sub(r"^void ", "", name))


def built(build, architecture):
    """{file of cuda/: [(kernel, instance, registers, stack)]} of a build."""
    root = pathlib.Path(__file__).parents[2] / "cuda"
    found = {}
    for source in sorted(root.rglob("*.cu")):
        file = source.relative_to(root).as_posix()
        target = build.joinpath("cuda", "CMakeFiles", "nmt_cuda.dir", file + ".o")
        if not target.exists():
            sys.exit(f"{target} does not exist: build nmt_cuda first")
        read = [row for image in images(target.read_bytes(), architecture)
                for row in kernels(image)]
        found[file] = read
    mangled = [row[0] for rows in found.values() for row in rows]
    names = iter(subprocess.run(["c++filt", "-p"], input="\n".join(mangled), check=True,
                                capture_output=True, text=True).stdout.splitlines())
    for file, rows in found.items():
        instances = [(short(next(names)), *numbers) for _, *numbers in rows]
        found[file] = [(instance.split("<")[0], instance, *numbers)
                       for instance, *numbers in instances]
    return found


def compiler_version(build):
    """The version of nvcc of a configured build."""
    for file in build.glob("CMakeFiles/*/CMakeCUDACompiler.cmake"):
        if version := re.search(r'CMAKE_CUDA_COMPILER_VERSION "([\d.]+)"',
                                file.read_text(encoding="utf-8")):
            return version[1]
    sys.exit(f"{build} has no CUDA compiler: configure a build with CUDA first")


def read_table(path):
    """The first line, and {(file, kernel or instance): (registers, stack)}."""
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = {}
    for line in lines:
        file, name, registers, stack = re.fullmatch(r"(\S+) (.+?) (\d+)(?: (\d+))?", line).groups()
        rows[file, name] = int(registers), int(stack or 0)
    return first, rows


def largest(found, rows):
    """{row: (registers, stack)} that the build needs; the row of an instance is its own or
    its kernel's."""
    needed = {}
    for file, kernel, instance, registers, stack in ((file, *row) for file, of in found.items()
                                                     for row in of):
        row = (file, instance if (file, instance) in rows else kernel)
        most, deepest = needed.get(row, (0, 0))
        needed[row] = max(most, registers), max(deepest, stack)
    return needed


def violations(found, rows):
    for file, kernel, instance, registers, stack in ((file, *row) for file, of in found.items()
                                                     for row in of):
        budget = rows.get((file, instance)) or rows.get((file, kernel))
        if not budget:
            yield (f"{file}: {instance} has no budget; it takes {registers} registers and {stack} "
                   "bytes of stack")
        elif registers > budget[0] or stack > budget[1]:
            yield (f"{file}: {instance} takes {registers} registers and {stack} bytes of stack; "
                   f"its budget is {budget[0]} and {budget[1]}")
    for file, name in sorted(rows.keys() - largest(found, rows).keys()):
        yield f"{file}: {name} has a budget, but the build has no such kernel"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=arguments.folder, help="folder of a build with CUDA")
    parser.add_argument("--update", action="store_true", help="write the table anew")
    args = parser.parse_args()
    path = pathlib.Path(__file__).parents[2] / "cuda/registers.txt"
    first, rows = read_table(path)
    compiler, architecture = re.fullmatch(r"nvcc (\S+), sm_(\d+)", first).groups()
    used = compiler_version(args.build)
    found = built(args.build, int(architecture))
    if not used.startswith(compiler + ".") or not any(found.values()):
        print(f"the table is for nvcc {compiler} and sm_{architecture}; this build is of nvcc "
              f"{used}"
              + ("" if any(found.values()) else f" and has no code for sm_{architecture}"))
        return SKIPPED
    if args.update:
        needed = largest(found, rows)
        path.write_text("\n".join([first, *(
            f"{file} {name} {-(-most // UNIT) * UNIT}" + (f" {deepest}" if deepest else "")
            for (file, name), (most, deepest) in sorted(needed.items()))]) + "\n", encoding="utf-8")
        return 0
    errors = list(violations(found, rows))
    print("\n".join(errors) or f"{sum(map(len, found.values()))} kernels keep to their budgets")
    return 1 if errors else 0


if __name__ == "__main__":
    arguments.call(main)
