"""Whether NVIDIA's tools work on this machine. Containers and sandboxes may refuse them access to
the GPU although programs run there; every program under such a tool then fails."""
import pathlib
import re
import shutil

import runner

PROBE = "RecurringWork.IsPlainWithoutGraphs"  # a test that launches a few small kernels
LIMIT = 120
TELLING = re.compile(r"error|denied|refused|permi|support|allowed|fail|unable|cannot", re.I)

TOOLKIT = "/usr/local/cuda/bin"
NSIGHT = pathlib.Path("/opt/nvidia/nsight-compute")  # a folder for each version


def find(name, nsight=NSIGHT):
    """ncu or compute-sanitizer in the path, the toolkit, or the newest version of Nsight Compute;
    None where there is none."""
    versions = sorted(nsight.glob("[0-9]*"),
                      key=lambda folder: [int(n) for n in re.findall(r"\d+", folder.name)],
                      reverse=True)
    return next(filter(None, (shutil.which(name, path=place)
                              for place in (None, TOOLKIT, *map(str, versions)))), None)


def first_reason(done):
    """The line of a tool's output that says why it failed."""
    if done.late:
        return f"it does not end within {LIMIT} s"
    lines = [line for line in done.text.splitlines() if line and "ERROR SUMMARY" not in line]
    telling = [line for line in lines if TELLING.search(line)]
    reason = (telling or lines[-1:] or [f"status {done.status}"])[0]
    return re.sub(r"^=+(\w+=+)?\s*", "", reason)[:200]


def sanitizer_works(done):
    """Errors that it finds are for the tests to report."""
    errors = re.search(r"ERROR SUMMARY: (\d+) error", done.text)
    return (bool(errors)
            and (int(errors[1]) > 0 or (done.status == 0 and "[  PASSED  ] 1 test" in done.text)))


def why_not(check, name, options, works):
    """Why a tool cannot be used, or "": asked once in a call, before the first step that
    needs it."""
    if name not in check.refusals:
        path = check.tool(name)
        if not path:
            check.refusals[name] = f"there is no {name}"
        else:
            program = check.program(f"cuda{'_emulated' if check.options.emulated else ''}_tests")
            early = check.runner.begins_early()
            try:
                done = check.runner.run([path, *options, program, f"--gtest_filter={PROBE}"], LIMIT)
            except runner.OutOfTime:
                if not early:
                    raise
                check.refusals[name] = f"{name} does not end within the time of this part"
            else:
                check.refusals[name] = ("" if works(done) else f"{name} does not work on this "
                                                               f"machine: {first_reason(done)}")
    return check.refusals[name]
