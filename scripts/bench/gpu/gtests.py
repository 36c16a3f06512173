"""Runs a GoogleTest program in groups of tests, so that finished groups are not repeated."""
import concurrent.futures
import os
import re

import runner

GROUP = 16
# groups at a time: half of a test is the CPU's work
JOBS = max(1, min(8, (os.cpu_count() or 1) // 2))


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
    good = (done.status == 0 and passed and (not skipped or without) and faults == 0
            and (not prefix or summary))
    return bool(good), without[1] if without else "", faults


class TestStep:
    """A step of the part: the tests of the program at `path`, perhaps under compute-sanitizer
    (`prefix`). `limit`: seconds of one group; `group`: tests in a group, unless an earlier call has
    halved that."""

    def __init__(self, check, name, path, prefix, limit, group):
        self.check, self.name, self.path, self.prefix, self.limit = check, name, path, prefix, limit
        self.step = check.state.step(name)
        self.passed = self.step.setdefault("passed", [])
        self.skipped = self.step.setdefault("skipped", [])
        self.failed = self.step.setdefault("failed", {})  # test: why
        self.group = self.step.get("group", group)

    def run_group(self, tests):
        """What a group printed, or None where the part's time is over."""
        early = self.check.runner.begins_early()
        try:
            return self.check.runner.run([*self.prefix, self.path,
                                          f"--gtest_filter={':'.join(tests)}"], self.limit)
        except runner.OutOfTime:
            if early and len(tests) == 1:
                self.failed[tests[0]] = (f"takes more than the {self.check.runner.limit:.0f} s of "
                                         "this part")
            elif early:
                self.step["group"] = max(1, self.group // 2)
            return None

    def note(self, tests, done):
        """Records a group; the tests to repeat one by one."""
        good, without, faults = verdict(done, self.prefix)
        if not good and len(tests) > 1:
            return tests
        step = self.step
        if good:
            lines = re.findall(r"\[  SKIPPED \] (\S+)", done.text)
            self.skipped.extend(test for test in tests if test in lines)
            self.passed.extend(test for test in tests if test not in lines)
            step["without"] = without or step.get("without", "")
        else:
            what = f"status {done.status}" + (f", {faults} errors" if faults else "")
            what += f", stopped after {self.limit} s" if done.late else ""
            self.failed[tests[0]] = what
            step["detail"] = (step.get("detail", "") + f"\n{tests[0]}: {what}\n"
                              + done.text[-1500:])[-6000:]
        step["seconds"] = round(step.get("seconds", 0) + done.seconds, 1)
        return []

    def run(self, todo, jobs):
        """Runs tests in groups, `jobs` at a time, and those of a failed group one by one."""
        over = False
        groups = [todo[at:at + self.group] for at in range(0, len(todo), self.group)]
        for at_once in (jobs, 1):
            alone = []
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                running = {pool.submit(self.run_group, tests): tests for tests in groups}
                for future in concurrent.futures.as_completed(running):
                    done = future.result()
                    over = over or done is None
                    if done is not None:
                        alone += self.note(running[future], done)
                        self.check.state.write()
            groups = [[test] for test in alone]
        self.check.state.write()
        if over:
            raise runner.OutOfTime

    def finish(self):
        """Writes the result of the step into the report."""
        result = f"{len(self.passed)} tests passed" + (", no error" if self.prefix else "")
        result += f", {len(self.skipped)} skipped: {self.step['without']}" if self.skipped else ""
        if self.failed:
            result = (f"FAILED: {len(self.failed)} tests: {', '.join(list(self.failed)[:5])}; "
                      f"{result}")
        self.check.state.finish(self.name, result, not self.failed, 0)


def test(check, name, program, wanted="*", prefix=(), limit=600, group=GROUP, jobs=JOBS):
    """Runs or continues the step `name`: the tests of a program that the filter `wanted` selects,
    `jobs` groups at a time."""
    state = check.state
    if state.is_done(name):
        return
    path = check.program(program)
    if not path.exists():
        return state.finish(name, f"FAILED: there is no {program}", False, 0)
    step = TestStep(check, name, path, prefix, limit, group)
    seen = {*step.passed, *step.skipped, *step.failed}
    todo = [test for test in names_of(check.runner.run, path, wanted) if test not in seen]
    if not todo and not seen:
        return state.finish(name, f"FAILED: {program} lists no test of {wanted}", False, 0)
    step.run(todo, jobs)
    step.finish()
