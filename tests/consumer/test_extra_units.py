#!/usr/bin/env python3
"""-DNMT_EXTRA_UNITS adds units from outside the source tree. Usage: test_extra_units.py
CXX_COMPILER."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 300  # far more than any command here takes


def run(*words):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS)


def configure(build, units):
    return run("cmake", "-S", ROOT, "-B", build, f"-DCMAKE_CXX_COMPILER={sys.argv[1]}",
               "-DNMT_WITH_CUDA=OFF", "-DNMT_WITH_MPI=OFF",
               "-DNMT_BUILD_TESTS=OFF", "-DNMT_ISA_LEVELS=x86-64-v3", f"-DNMT_EXTRA_UNITS={units}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        unit = home / "custom_unit"
        unit.mkdir()
        for file in (ROOT / "examples/custom_unit").iterdir():
            (unit / file.name).write_bytes(file.read_bytes())

        wrong = configure(home / "wrong", home / "missing")
        assert wrong.returncode != 0 and "no units.def there" in wrong.stdout, wrong.stdout
        right = configure(home / "build", unit)
        assert right.returncode == 0, right.stdout

        program = home / "extra_units"
        compiled = run(sys.argv[1], "-std=c++20", "-I", home / "build/generated", "-I",
                       ROOT / "src", "-I", ROOT / "include",
                       ROOT / "tests/consumer/extra_units.cpp", "-o", program)
        assert compiled.returncode == 0, compiled.stdout
        told = run(program)
        assert (told.returncode
                == 0), f"a unit of examples/custom_unit is wrong; the units are {told.stdout}"
        assert {"gru", "gla", "qrnn", "deltanet"} <= set(told.stdout.split()), told.stdout
    print("the units are known, and their gradients are right")


if __name__ == "__main__":
    main()
