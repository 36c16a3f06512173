#!/usr/bin/env python3
"""Checks the rules of docs/design/cuda.md ("Writing a kernel") that a compiler cannot check:
- every kernel declared for CUDA is called by the parity tests of tests/cuda, and with large shapes
  by those of tests/emulator/dry;
- kernels are launched by launch() alone;
- kernels of files that launch blocks of row_block() threads have launch bounds: for some devices
  the compiler would give them more registers than such a block can have, and they would not start;
- shared memory is declared by NMT_SHARED or NMT_DYNAMIC_SHARED;
- sums of the CPU kernels have an order that does not depend on the width of vectors
  (kernels/sums.h);
- the status of every call of a CUDA library is checked. Destructors and noexcept functions are
  exempt, since they cannot report an error; so are statements with the comment "// unchecked".
Usage: check_kernels.py [SOURCE_DIR]. Prints every violation and exits with status 1 if
there is one."""
import pathlib
import re
import sys

DECLARED = re.compile(r"^(?:NMT_KERNEL\(\s*(\w+)|[\w:]+ (\w+)\(const Cuda&)", re.M)
CALL = re.compile(r"(?<![\w>:&])((?:cuda|cublas|cudnn|nccl)[A-Z]\w*)\(")
IGNORED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
# Calls whose status is a value that the caller compares or stores.
CHECKED = (re.compile(r"NMT_CUDA_CHECK\(|(?:cudaError_t|cublasStatus_t|ncclResult_t) \w+ ="
                      r"|\bstatus = "
                      r"|[!=]= cudaSuccess|is_out_of_memory\("))
# They return no status, or a status that says what is being asked.
NO_STATUS = re.compile(
    r"cudaGetLastError|cudaGetDeviceCount|\w+Get\w*"
    r"(?:ErrorString|ErrorName|LastError|StatusString)")
SUM = re.compile(r"^#pragma omp simd.*reduction\(\s*[+*-]", re.M)
# Products, which are calls of libraries; a kernel of one thread; and functions that launch nothing.
NOT_LARGE = re.compile(r"gemm\w*|clip|reads_rounded|why_not_persistent")
SILENT = re.compile(r"~\w+\(|\bnoexcept\b")


def blank(text):
    """The text with comments and string literals replaced by spaces of the same length."""
    return IGNORED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def statements(code):
    """(begin, end, silent) of every statement: what stands between semicolons and braces. `silent`:
    within a destructor or a noexcept function."""
    begin, enclosing = 0, []
    for match in re.finditer(r"[;{}]", code):
        yield begin, match.start(), any(enclosing)
        if match[0] == "{":
            enclosing.append(bool(SILENT.search(code, begin, match.start())))
        elif match[0] == "}" and enclosing:
            enclosing.pop()
        begin = match.end()


def check_source(path):
    text = path.read_text(encoding="utf-8")
    code = blank(text)
    if path.suffix == ".cu" and "row_block(" in code:
        for match in re.finditer(r"__global__ void (?!__launch_bounds__)", code):
            yield (f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a kernel of row_block() "
                   "threads without launch bounds")
    for begin, end, silent in statements(code):
        statement = code[begin:end]

        def at(offset):
            return f"{path}:{text.count(chr(10), 0, begin + offset) + 1}"
        if "<<<" in statement:
            yield f"{at(statement.index('<<<'))}: a kernel is launched without launch()"
        if "__shared__" in statement and path.name != "launch.h":
            yield (f"{at(statement.index('__shared__'))}: shared memory without NMT_SHARED or "
                   "NMT_DYNAMIC_SHARED")
        line_end = text.find("\n", end)
        if silent or CHECKED.search(statement) or "// unchecked" in text[begin:line_end]:
            continue
        for match in CALL.finditer(statement):
            if not NO_STATUS.fullmatch(match[1]):
                yield f"{at(match.start())}: {match[1]} is called without NMT_CUDA_CHECK"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = []
    declared = {}
    for header in sorted((root / "src/kernels").rglob("*.h")):
        for match in DECLARED.finditer(blank(header.read_text(encoding="utf-8"))):
            declared[match[1] or match[2]] = header
    if not declared:
        found.append("src/kernels declares no kernel for CUDA")
    tests = "".join(path.read_text(encoding="utf-8")
                    for path in sorted((root / "tests/cuda").rglob("*.cpp")))
    large = "".join(path.read_text(encoding="utf-8")
                    for path in sorted((root / "tests/emulator/dry").glob("large*.cpp")))
    for name, header in declared.items():
        if not re.search(rf"\b{name}\(", tests):
            found.append(f"{header}: {name} has a CUDA kernel and no parity test (tests/cuda)")
        if not NOT_LARGE.fullmatch(name) and not re.search(rf"\b{name}\(", large):
            found.append(f"{header}: {name} has a CUDA kernel and no large shape "
                         "(tests/emulator/dry/large_*_test.cpp)")
    for path in sorted((root / "src/kernels").rglob("*")):
        if path.suffix in {".h", ".cpp"}:
            text = path.read_text(encoding="utf-8")
            found.extend(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a sum whose order "
                         "depends on the width of "
                         "vectors; use kernels/sums.h" for match in SUM.finditer(text))
    for path in sorted((root / "cuda").rglob("*")):
        if path.suffix in {".cu", ".h", ".cpp"}:
            found.extend(check_source(path))
    print("\n".join(found)
          or f"{len(declared)} kernels are declared for CUDA and tested; no violations in cuda/")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
