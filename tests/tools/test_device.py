#!/usr/bin/env python3
"""--device of the programs: what is refused and how, what auto takes, and that nothing of CUDA is
needed to start. Usage: test_device.py FOLDER_OF_PROGRAMS"""
import pathlib
import re
import subprocess
import sys

PROGRAMS = pathlib.Path(sys.argv[1])
# The model does not exist, so a program that got past its device stops there.
NO_MODEL = "does not exist"


def score(device, *options):
    run = subprocess.run([PROGRAMS / "nmt-score", "--device", device, *options,
                          "-m", "/nonexistent", __file__, __file__], capture_output=True, text=True)
    return run.returncode, run.stderr


def main():
    wrong = []

    def check(condition, what):
        if not condition:
            wrong.append(what)

    status, text = score("gpu")
    check(status == 2 and "--device: 'gpu' is not cpu, cuda, cuda:N or auto" in text,
          f"gpu: {status} {text}")

    status, text = score("cpu")
    check(status == 2 and " on cpu" in text.splitlines()[0] and NO_MODEL in text,
          f"cpu: {status} {text}")

    status, automatic = score("auto")
    first = automatic.splitlines()[0]
    check(status == 2 and NO_MODEL in automatic, f"auto: {status} {automatic}")
    if " on cuda:0 (" in first:
        check(re.search(r"compute capability \d+\.\d", first), f"auto: {first}")
        status, text = score("cuda:99")
        check(status == 2 and re.search(r"device=cuda:99: there (is|are) \d+ CUDA device", text),
              f"cuda:99: {status} {text}")
        check(" on cuda:0 (" in score("cuda")[1], "cuda is not taken where auto takes it")
    else:
        reason = re.search(r" on cpu.*; no GPU: (.+)", first)
        check(reason, f"auto: {first}")
        for device in ("cuda", "cuda:0", "0"):
            status, text = score(device)
            check(status == 2 and reason and reason[1] in text and len(text.splitlines()) == 1,
                  f"{device}: {status} {text}")

    # Precisions belong to devices.
    status, text = score("cpu", "--precision", "tf32")
    check(status == 2 and "precision: tf32 is for a GPU" in text and len(text.splitlines()) == 1,
          f"tf32: {status} {text}")
    for precision in ("float32", "bfloat16", "int8"):
        status, text = score("cpu", "--precision", precision)
        check(NO_MODEL in text and precision in text.splitlines()[0],
              f"{precision}: {status} {text}")
    for options, told in ((("--precision", "tf32"), "precision: tf32 is for a GPU"),
                          (("--precision", "bfloat16", "--products", "onednn"),
                           "products: onednn is for precision: float32"),
                          (("--precision", "bfloat16", "--products", "bfloat16x3"),
                           "products: bfloat16x3 is for precision: float32")):
        run = subprocess.run([PROGRAMS / "nmt-train", *options, "--model", "/nonexistent/model",
                              __file__, __file__], capture_output=True, text=True)
        check(run.returncode == 2 and told in run.stderr, f"nmt-train: {run.stderr}")

    # The driver and the toolkit's libraries are looked for when a GPU is asked for, never by the
    # dynamic loader.
    loaded = subprocess.run(["ldd", PROGRAMS / "nmt-train"], capture_output=True, text=True).stdout
    check("libnmt_core" in loaded, f"ldd: {loaded}")
    check(not re.search(r"lib(cuda|cudart|cublas\w*|cudnn|nccl)\.so", loaded),
          f"needed at start: {loaded}")

    print("\n".join(wrong) or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
