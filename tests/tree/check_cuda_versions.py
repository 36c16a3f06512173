#!/usr/bin/env python3
"""Checks which CUDA toolkits cuda/toolkit.cmake accepts: CMake reads it as a script and finds an
nvcc that only prints a version. docs/design/cuda.md names the oldest version.

- CUDA 12.0, 12.4, 12.8 and 13.0 are accepted, each with its architectures of `release`;
- CUDA 11.8 and a program that names no version are refused: AUTO leaves the backend out and says
  why in one line, ON ends the configuration with the same reason.

Usage: check_cuda_versions.py [SOURCE_DIR [CMAKE]]; exits 1 and names each wrong answer."""
import os
import pathlib
import subprocess
import sys
import tempfile

# enable_language() and find_package() need a project; check_language() would compile.
SCRIPT = """cmake_minimum_required(VERSION 3.25)
include(CheckLanguage)
macro(check_language language)
  set(CMAKE_${language}_COMPILER ${NMT_NVCC})
endmacro()
function(enable_language)
endfunction()
function(find_package)
  set(CUDAToolkit_VERSION ${NMT_NVCC_VERSION} PARENT_SCOPE)
endfunction()
include(${SOURCE_DIR}/cuda/toolkit.cmake)
message(STATUS "answer: ${NMT_CUDA_KIND}: ${NMT_CUDA_SUMMARY}")
"""
TO_90 = "75-real 80-real 86-real 89-real 90"
TO_120 = TO_90 + "-real 100-real 120"
ACCEPTED = {"12.0": TO_90, "12.4": TO_90, "12.8": TO_120, "13.0": TO_120}


def configure(root, cmake, folder, release, with_cuda):
    """(exit status, output in one line) with an nvcc of a release in PATH."""
    nvcc = folder / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, {release}'\n", encoding="utf-8")
    nvcc.chmod(0o755)
    script = folder / "toolkit.cmake"
    script.write_text(SCRIPT, encoding="utf-8")
    env = {name: value for name, value in os.environ.items()
           if name not in ("CUDACXX", "CUDA_HOME", "CMAKE_PREFIX_PATH", "CMAKE_PROGRAM_PATH")}
    env["PATH"] = f"{folder}:{env['PATH']}"
    done = subprocess.run([cmake, f"-DSOURCE_DIR={root}", f"-DNMT_WITH_CUDA={with_cuda}",
                           "-DNMT_CUDA_ARCHITECTURES=release", "-P", str(script)], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, " ".join(done.stdout.split())


def errors(root, cmake, folder):
    nvcc = folder / "nvcc"

    def expect(release, with_cuda, expected, fails=False):
        status, output = configure(root, cmake, folder, release, with_cuda)
        answer = output.split("answer: ", 1)[-1]
        if (status != 0) != fails or (expected not in output if fails else expected != answer):
            yield (f"{release or 'no release'}, NMT_WITH_CUDA={with_cuda}: expected {expected!r}, "
                   f"exit status {status}: {output!r}")

    for version, architectures in ACCEPTED.items():
        for with_cuda in ("AUTO", "ON"):
            yield from expect(f"release {version}, V{version}.99", with_cuda,
                              f"ON: {version} ({nvcc}), architectures {architectures}")
    for release, why in (("release 11.8, V11.8.89",
                          f"{nvcc} is CUDA 11.8; 12.0 is the oldest that compiles C++20"),
                         ("", f"{nvcc} --version names no CUDA release")):
        yield from expect(release, "AUTO", f"OFF: off: {why}")
        yield from expect(release, "ON", f"NMT_WITH_CUDA=ON: {why}", fails=True)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    cmake = sys.argv[2] if len(sys.argv) > 2 else "cmake"
    with tempfile.TemporaryDirectory() as folder:
        wrong = list(errors(root, cmake, pathlib.Path(folder)))
    print("\n".join(wrong) or f"CUDA {', '.join(ACCEPTED)} are accepted, 11.8 is refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
