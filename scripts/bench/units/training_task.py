"""One training of compare_units.py and the translations of its model."""
import json
import subprocess

import units_table
from common import inputs
from training_command import (BIN, BUDGET, budget, die_with_parent, reason, say, train_command,
                              updates_of)


class TrainingTask:
    """One training, followed by the translation of the test set: one process at a time, started and
    polled by the main loop."""

    def __init__(self, args, unit, seed):
        self.args, self.unit, self.seed = args, unit, seed
        self.folder = args.work / unit.folder / f"seed-{seed}"
        self.model, self.result_file = self.folder / "model", self.folder / "result.json"
        self.hypotheses = [self.folder / units_table.hypothesis(test)
                           for test in range(len(args.tests))]
        self.command = train_command(args, unit, self.model, seed)
        self.budget = budget(args, unit)
        self.steps, self.process = None, None

    def what(self):
        return f"{self.unit.name}, seed {self.seed}"

    def inputs(self):
        return inputs.of_command(self.command, without=BUDGET)

    def begun(self):
        return (self.model / "latest").exists() or self.result().get("status") == "ok"

    def has_record(self):
        """Whether the inputs of what exists are recorded. Raises Changed if they differ
        from those of now."""
        names = inputs.changed(self.folder / "inputs.json", self.inputs()) if self.begun() else []
        if names:
            inputs.refuse(self.folder, names)
        return names is not None

    def result(self):
        try:
            found = json.loads(self.result_file.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def trained(self, result):
        """Whether the training has finished with this budget."""
        if result.get("status") != "ok":
            return False
        if "budget" in result:
            return result["budget"] == self.budget
        # Of an older version, which did not lift the limits of --config.
        limit = updates_of(self.args, self.unit)
        older = [*self.command[: -len(self.budget)],
                 *(self.budget if self.args.minutes else self.budget[:2])]
        return result["command"] in (self.command, older) and limit in (None, result["updates"])

    def to_translate(self, result):
        return [test for test in range(len(self.args.tests))
                if not units_table.is_translated(self.args, self.folder, result, test)]

    def done(self):
        result = self.result()
        return self.trained(result) and not self.to_translate(result)

    def action(self):
        return ("translates" if self.trained(self.result())
                else "goes on" if (self.model / "latest").exists() else "starts")

    def begin(self):
        if not self.begun():
            self.folder.mkdir(parents=True, exist_ok=True)
            inputs.keep(self.folder / "inputs.json", self.inputs())
        result = self.result()
        trained = self.trained(result)
        tests = self.to_translate(result) if trained else range(len(self.args.tests))
        for path in (self.result_file, *(self.hypotheses[test] for test in tests)):
            path.unlink(missing_ok=True)
        self.steps = [] if trained else [("train.log", [BIN / "nmt-train", *self.command])]
        for test in tests:
            self.steps.append(("translate.log", [
                BIN / "nmt-translate", "-m", self.model, "-i", self.args.tests[test][0],
                "-o", self.hypotheses[test], "--cpu-threads", self.args.threads]))
        self.next()

    def next(self):
        name, command = self.steps.pop(0)
        self.log = self.folder / name
        with open(self.log, "ab" if name == "train.log" else "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log,
                                            close_fds=False, start_new_session=True,
                                            preexec_fn=die_with_parent)

    def poll(self):
        """Whether training and translation have finished."""
        status = self.process.poll()
        if status is None:
            return False
        if status != 0:
            self.finish({"status": "failed",
                         "why": f"{self.log.stem}: status {status}: {reason(self.log)}"})
        elif self.steps:
            self.next()
            return False
        else:
            result = units_table.read_training(BIN, self.model, self.folder / "train.log")
            limit, updates = updates_of(self.args, self.unit), result["updates"] or 0
            if limit and updates > limit:
                result = {"why": f"has {updates} updates from an earlier run, more than the "
                                 f"{limit} asked for: take another --work"}
            elif limit and updates < limit:
                result = {"why": f"ended after {updates} of {limit} updates: "
                                 f"see {self.folder / 'train.log'}"}
            self.finish({"status": "failed" if "why" in result else "ok", **result})
        return True

    def finish(self, result):
        made_from = {"command": self.command, "budget": self.budget,
                     "tests": self.args.test_digests}
        units_table.write_whole(self.result_file, json.dumps(
            {**result, "unit": self.unit.name, "seed": self.seed, **made_from}, indent=1) + "\n")
        say(f"{self.what()}: {result['status']}"
            + (f": {result['why']}" if "why" in result else ""))
