#!/usr/bin/env python3
"""Checks the rules of docs/design/cuda.md that a compiler cannot: every kernel that is declared for CUDA is called by the parity table
of tests/cuda or still named in cuda/not_yet.cpp; kernels are started by launch() alone; shared memory is declared by NMT_SHARED
or NMT_DYNAMIC_SHARED; every call of a CUDA library is checked. Usage: check_kernels.py [SOURCE_DIR]; exits 1 and names
what it found."""
import pathlib
import re
import sys

DECLARED = re.compile(r"^(?:NMT_KERNEL\(\s*(\w+)|[\w:]+ (\w+)\(const Cuda&)", re.M)
CALL = re.compile(r"(?<![\w.>:\"&])((?:cuda|cublas|cudnn|nccl)[A-Z]\w*)\(")
# Where nobody could be told, a failure is an answer, or the status is looked at by hand. Others say "// unchecked" on their line.
UNCHECKED = {"cudaGetLastError", "cudaGetErrorString", "cudaGetErrorName", "cudaDriverGetVersion", "cudaGetDeviceCount"}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = []
    declared = {}
    for header in sorted((root / "src/kernels").rglob("*.h")):
        text = re.sub(r"//.*", "", header.read_text(encoding="utf-8"))
        for match in DECLARED.finditer(text):
            declared[match[1] or match[2]] = header
    if not declared:
        found.append("src/kernels declares no kernel for CUDA")
    missing = root / "cuda/not_yet.cpp"
    missing = missing.read_text(encoding="utf-8") if missing.exists() else ""
    table = "".join(path.read_text(encoding="utf-8") for path in sorted((root / "tests/cuda").glob("*.cpp")))
    for name, header in declared.items():
        if re.search(rf"\b{name}\(const Cuda&", missing):
            continue
        if not re.search(rf"\b{name}\(", table):
            found.append(f"{header}: {name} has a CUDA kernel and no row in the parity table (tests/cuda)")
    for path in sorted((root / "cuda").rglob("*")):
        if path.suffix not in {".cu", ".h", ".cpp"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = line.split("//")[0]
            if "<<<" in code:
                found.append(f"{path}:{number}: a kernel is started without launch()")
            if "__shared__" in code and path.name != "launch.h":
                found.append(f"{path}:{number}: shared memory without NMT_SHARED or NMT_DYNAMIC_SHARED")
            for match in CALL.finditer(code):
                checked = re.search(r"NMT_CUDA_CHECK\(|cudaError_t \w+ = |^\s*(cudaFree|cudaFreeHost|cudaStreamSynchronize|"
                                    r"cudaStreamDestroy)\(|cudaEventDestroy\(|[!=]= cudaSuccess|noexcept|is_out_of_memory\(|if \(data_\) cudaFree", code)
                if match[1] not in UNCHECKED and not checked and "// unchecked" not in line:
                    found.append(f"{path}:{number}: {match[1]} is called without NMT_CUDA_CHECK")
    print("\n".join(found) or f"{len(declared)} kernels are declared for CUDA, all tested or known to be missing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
