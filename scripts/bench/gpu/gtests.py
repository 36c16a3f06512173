"""Runs a GoogleTest program in groups of tests, so that finished groups are not repeated."""
import concurrent.futures
import os
import re

import runner

GROUP = 16
JOBS = max(1, min(8, (os.cpu_count() or 1) // 2))  # groups at a time: half of a test is the CPU's work


def names_of(run, program, wanted):
    """The tests that the filter selects."""
    done = run([program, "--gtest_list_tests", f"--gtest_filter={wanted}"], 60)
    names, suite = [], ""
    for line in done.text.splitlines():
        if re.fullmatch(r"\S+\.(\s+#.*)?", line):
            suite = line.split("#")[0].strip()
        elif line.startswith("  ") and suite:
            names.append(suite + line.split("#")[0].strip())
    return names


def verdict(done, prefix):
    """Whether a group passed, why tests were skipped, and the errors that the sanitizer counted."""
    passed = re.search(r"\[  PASSED  \] (\d+) test", done.text)
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", done.text)
    without = re.search(r"no cuDNN to test: (.+)", done.text)  # no other cause is accepted
    summary = re.findall(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", done.text)
    faults = sum(int(a or b) for a, b in summary)
    good = done.status == 0 and passed and (not skipped or without) and faults == 0 and (not prefix or summary)
    return bool(good), without[1] if without else "", faults


def test(check, name, program, wanted="*", prefix=(), limit=600, group=GROUP, jobs=JOBS):
    """A step of the part: the tests of a program, perhaps under compute-sanitizer. `limit`: seconds
    of one group; `jobs`: groups at a time. The tests of a group that fails are repeated one by one."""
    state, run = check.state, check.runner.run
    if state.is_done(name):
        return
    path = check.program(program)
    if not path.exists():
        return state.finish(name, f"FAILED: there is no {program}", False, 0)
    step = state.step(name)
    passed, skipped, failed = step.setdefault("passed", []), step.setdefault("skipped", []), step.setdefault("failed", {})
    seen = set(passed) | set(skipped) | set(failed)
    todo = [test for test in names_of(run, path, wanted) if test not in seen]
    if not todo and not seen:
        return state.finish(name, f"FAILED: {program} lists no test of {wanted}", False, 0)

    def run_group(tests):
        """What a group printed, or None where the part's time is over."""
        early = check.runner.begins_early()
        try:
            return run([*prefix, path, f"--gtest_filter={':'.join(tests)}"], limit)
        except runner.OutOfTime:
            if early and len(tests) == 1:
                failed[tests[0]] = f"takes more than the {check.runner.limit:.0f} s of this part"
            elif early:
                step["group"] = max(1, size // 2)
            return None

    def note(tests, done):
        """Records a group; the tests to repeat one by one."""
        good, without, faults = verdict(done, prefix)
        if not good and len(tests) > 1:
            return tests
        if good:
            lines = re.findall(r"\[  SKIPPED \] (\S+)", done.text)
            skipped.extend(test for test in tests if test in lines)
            passed.extend(test for test in tests if test not in lines)
            step["without"] = without or step.get("without", "")
        else:
            what = f"status {done.status}" + (f", {faults} errors" if faults else "") + (f", stopped after {limit} s" if done.late else "")
            failed[tests[0]] = what
            step["detail"] = (step.get("detail", "") + f"\n{tests[0]}: {what}\n" + done.text[-1500:])[-6000:]
        step["seconds"] = round(step.get("seconds", 0) + done.seconds, 1)
        return []

    over = False
    size = step.get("group", group)
    groups = [todo[at:at + size] for at in range(0, len(todo), size)]
    for at_once in (jobs, 1):
        alone = []
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            running = {pool.submit(run_group, tests): tests for tests in groups}
            for future in concurrent.futures.as_completed(running):
                done = future.result()
                over = over or done is None
                if done is not None:
                    alone += note(running[future], done)
                    state.write()
        groups = [[test] for test in alone]
    state.write()
    if over:
        raise runner.OutOfTime
    result = f"{len(passed)} tests passed" + (", no error" if prefix else "") + (f", {len(skipped)} skipped: {step['without']}" if skipped else "")
    if failed:
        result = f"FAILED: {len(failed)} tests: {', '.join(list(failed)[:5])}; {result}"
    state.finish(name, result, not failed, 0)
