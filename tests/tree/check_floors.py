#!/usr/bin/env python3
"""Checks the floors of docs/design/architecture.md:

- a file includes its own floor or a lower one; train, search and eval never include each other;
- a room of src/tasks never includes another one;
- a program of tools/ has at most 80 lines and includes the headers of app, http, config and
  core alone;
- only tools/ and src/app/program.* know argc and argv;
- kinds of devices are told apart in src/tensor alone (DeviceKind); other code asks nmt::Backend;
- nmt::Error is caught in the files that CATCHERS names, and nowhere else.

Usage: check_floors.py [SOURCE_DIR]; exits 1 and names each broken rule."""
import pathlib
import re
import sys

FLOORS = [
    {"core", "config"},
    {"tensor", "kernels", "units", "text"},
    {"autograd", "data"},
    {"nn"},
    {"model"},
    {"train", "search", "eval"},
    {"tasks"},
    {"app"},
    {"library", "serve"},
    {"http"},
    {"tools"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
FLOOR["nmt"] = 0  # include/nmt: the public headers, which include nothing else of the project
SIBLINGS = FLOORS[5]
OF_PROGRAMS = {"app", "config", "core", "http"}
PROGRAM_LINES = 80
CATCHERS = {  # docs/design/architecture.md says why
    "src/app/program.cpp",
    "src/app/benchmark/bench.h",
    "src/app/compute/product_choice.cpp",
    "src/app/train/directory/directory_store.cpp",
    "src/app/train/training_text.cpp",
    "src/app/train/validation.cpp",
    "src/app/vocab/learn.cpp",
    "src/app/compute/workers.cpp",
    "src/config/option.cpp",
    "src/model/directory/checkpoint_folders.cpp",
    "src/model/directory/from_settings.h",
    "src/model/directory/model_directory.cpp",
    "src/serve/batcher.cpp",
    "src/serve/model_pool.cpp",
    "src/http/api.cpp",
}
CATCH = re.compile(
    r"catch\s*\(\s*(?:const\s+)?(?:(?:nmt::)?Error|std::exception|std::runtime_error)\b")
ARGUMENTS = re.compile(r"\barg[cv]\b")
OTHER_TASK = re.compile(r'^\s*#\s*include\s*"tasks/([a-z_]+)/', re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([a-z_]+)/', re.M)


def room_of(name):
    top, second = name.split("/")[:2]
    return {"src": second, "cuda": "kernels", "tools": "tools"}[top]


def wrong_includes(name, text):
    room = room_of(name)
    for target in INCLUDE.findall(text):
        if target == "cuda" and name.startswith("cuda/"):
            continue
        if target not in FLOOR:
            yield f"includes {target}/, which is on no floor"
        elif FLOOR[target] > FLOOR[room]:
            yield f"{room} (floor {FLOOR[room]}) includes {target} (floor {FLOOR[target]})"
        elif room in SIBLINGS and target in SIBLINGS and room != target:
            yield f"sibling {room} includes sibling {target}"
        elif room == "tools" and target not in OF_PROGRAMS:
            yield f"a program includes {target}/; it may include {', '.join(sorted(OF_PROGRAMS))}"


def broken_rules(name, text):
    yield from wrong_includes(name, text)
    if name.startswith("src/tasks/"):
        for task in OTHER_TASK.findall(text):
            if task != name.split("/")[2]:
                yield f"task {name.split('/')[2]} includes task {task}"
    if CATCH.search(text) and name not in CATCHERS:
        yield "catches nmt::Error, which is for the files of CATCHERS"
    if (room_of(name) != "tools" and not name.startswith("src/app/program.")
        and ARGUMENTS.search(text)):
        yield "knows argc or argv, which is for tools/ and src/app/program"
    if "DeviceKind" in text and room_of(name) != "tensor":
        yield "DeviceKind is for src/tensor; ask for a property of Backend (tensor/backend.h)"
    lines = text.count("\n")
    if room_of(name) == "tools" and lines > PROGRAM_LINES:
        yield (
            f"a program of {lines} lines, {PROGRAM_LINES} are allowed: its work belongs to src/app")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    broken, seen = [], 0
    for top in ("src", "cuda", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".cu", ".cuh", ".def"}:
                continue
            seen += 1
            name = path.relative_to(root).as_posix()
            broken += [f"{name}: {rule}"
                       for rule in broken_rules(name, path.read_text(encoding="utf-8"))]
    for name in CATCHERS:
        if (not (root / name).is_file()
            or not CATCH.search((root / name).read_text(encoding="utf-8"))):
            broken.append(f"{name}: is named in CATCHERS and catches nothing")
    print("\n".join(broken) or f"{seen} files stand on their floors")
    return 1 if broken or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
