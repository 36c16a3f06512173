#!/usr/bin/env python3
"""Checks that C++ files include what they use of the standard library, fmt and nlohmann-json.

A header counts when the file or a file of the project that it includes names it; what a header of
the standard library includes itself does not count, since that differs between compilers and
versions. Builds with precompiled headers would not notice a missing line.

Usage: check_includes.py [SOURCE_DIR]; exits 1 and names each missing header."""
import functools
import pathlib
import re
import sys

from files import CODE, GOLDEN, project_files, suffix

ROOTS = ("include", "src", ".", "tests/emulator", "tests/emulator/include", "tests/standins")

# What needs which header; any of several where the standard has it in each of them.
HEADERS = {
    "algorithm": "clamp copy_n count count_if equal_range fill_n find_if for_each iter_swap "
                 "lexicographical_compare lower_bound "
                 "max_element min_element minmax_element next_permutation nth_element partial_sort "
                 "reverse rotate shuffle sort "
                 "stable_sort transform unique upper_bound all_of any_of none_of is_sorted",
    "array": "array",
    "atomic": "atomic atomic_ref memory_order_relaxed memory_order_acquire memory_order_release",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero popcount endian",
    "charconv": "from_chars to_chars",
    "condition_variable": "condition_variable condition_variable_any",
    "cmath": "abs ceil cos exp exp2 expm1 floor fma hypot isfinite isinf isnan log log1p log2 "
             "lround nextafter pow round sin sqrt tanh",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t "
               "intptr_t",
    "cstring": "memchr memcmp memcpy memmove memset strerror strlen strcmp strstr",
    "deque": "deque",
    "exception": "exception_ptr current_exception rethrow_exception",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream",
    "functional": "function greater hash plus invoke reference_wrapper",
    "future": "async future promise packaged_task",
    "iterator": "back_inserter istreambuf_iterator make_move_iterator",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "mutex lock_guard unique_lock scoped_lock once_flag call_once",
    "new": "bad_alloc",
    "numeric": "accumulate iota reduce partial_sum inner_product gcd",
    "optional": "optional nullopt",
    "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 normal_distribution uniform_int_distribution "
              "uniform_real_distribution",
    "regex": "regex smatch regex_match regex_search",
    "set": "set multiset",
    "span": "span as_bytes",
    "sstream": "ostringstream istringstream stringstream",
    "stdexcept": "runtime_error logic_error invalid_argument out_of_range",
    "string": "string to_string getline stoi stod",
    "string_view": "string_view",
    "thread": "thread jthread this_thread",
    "tuple": "tuple tie make_tuple",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "variant": "variant visit holds_alternative monostate",
    "vector": "vector",
}
ALSO = {  # other headers that have a name of a header too
    "cmath": {"cstdlib"},
    "string_view": {"string"},
    "string": {"sstream"},
    "exception": {"stdexcept"},
    "new": {"memory"},
}
HEADER_OF = {name: header for header, names in HEADERS.items() for name in names.split()}

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
STANDARD = re.compile(r"\bstd::(?:chrono\b|([a-z_0-9]+))")
LIBRARY = re.compile(r"\b(fmt|nlohmann)::[a-z_]+")  # whose headers are in a folder of that name


class Tree:
    def __init__(self, root):
        self.root = root

    @functools.cache
    def find(self, includer, name):
        for folder in (includer.parent, *(self.root / folder for folder in ROOTS)):
            if (folder / name).is_file():
                return folder / name
        return None

    @functools.cache
    def headers(self, path):
        """Names of the headers of other projects that a file includes, also through its own
        project's."""
        found, seen, left = set(), {path}, [path]
        while left:
            file = left.pop()
            for _, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
                target = self.find(file, name)
                if target is None:
                    found.add(name)
                elif target not in seen:
                    seen.add(target)
                    left.append(target)
        return found


def missing(tree, path):
    code = COMMENT.sub('""', re.sub(r"^[ \t]*#[ \t]*include.*$", "",
                                    path.read_text(encoding="utf-8"), flags=re.M))
    headers = tree.headers(path)
    used = {name or "chrono" for name in STANDARD.findall(code)}
    for name in sorted(used):
        header = "chrono" if name == "chrono" else HEADER_OF.get(name)
        if header and header not in headers and not headers & ALSO.get(header, set()):
            yield f"std::{name}", header
    for library in sorted(set(LIBRARY.findall(code))):
        if not any(header.startswith(f"{library}/") for header in headers):
            yield f"{library}::", f"{library}/..."


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    tree = Tree(root)
    names = [name for name in project_files(root) if suffix(name) in CODE
             and not name.startswith(GOLDEN)]
    bad = [f"{name}: {use} needs <{header}>" for name in names
           for use, header in missing(tree, root / name)]
    print("\n".join(bad) or f"{len(names)} files include what they use")
    sys.exit(bool(bad) or not names)


if __name__ == "__main__":
    main()
