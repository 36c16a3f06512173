#!/usr/bin/env python3
"""Checks the floors of docs/design/architecture.md: a file includes its own floor or a lower one, and the siblings of the
top library floor never include each other; nmt::Error is caught in src/app alone, but for two named files. Usage: check_floors.py [SOURCE_DIR]; exits 1 and names each broken rule."""
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
    {"app"},
    {"tools"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
FLOOR["nmt"] = 0  # include/nmt: the public headers, which include nothing else of the project
SIBLINGS = FLOORS[5]
CATCH = re.compile(r"catch\s*\(\s*(?:const\s+)?(?:(?:nmt::)?Error|std::exception|std::runtime_error)\b")
CATCHERS = {"src/config/option.cpp", "src/model/directory/model_directory.cpp"}  # docs/design/architecture.md says why
INCLUDE = re.compile(r'^\s*#\s*include\s*"([a-z_]+)/', re.M)


def room_of(path, root):
    parts = path.relative_to(root).parts
    if parts[0] == "src":
        return parts[1]
    return {"cuda": "kernels", "tools": "tools"}[parts[0]]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    broken, seen = [], 0
    for top in ("src", "cuda", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".cu", ".cuh", ".def"}:
                continue
            seen += 1
            room = room_of(path, root)
            text = path.read_text(encoding="utf-8")
            if room not in {"app", "tools"} and CATCH.search(text) and str(path.relative_to(root)) not in CATCHERS:
                broken.append(f"{path}: catches nmt::Error, which is for src/app")
            for target in INCLUDE.findall(text):
                if target == "cuda" and path.is_relative_to(root / "cuda"):
                    continue
                if target not in FLOOR:
                    broken.append(f"{path}: includes {target}/, which is on no floor")
                elif FLOOR[target] > FLOOR[room]:
                    broken.append(f"{path}: {room} (floor {FLOOR[room]}) includes {target} (floor {FLOOR[target]})")
                elif room in SIBLINGS and target in SIBLINGS and room != target:
                    broken.append(f"{path}: sibling {room} includes sibling {target}")
    print("\n".join(broken) or f"{seen} files stand on their floors")
    return 1 if broken or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
