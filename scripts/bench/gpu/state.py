"""The report file of a part, part-N.json: finished steps, written after every step, so that an
interrupted part continues where it stopped."""
import json
import os
import pathlib

NAMES = {1: "tests", 2: "benchmarks", 3: "comparisons and profiles", 4: "training",
         5: "memory checks"}
MAX_BYTES = 15 << 20
MAX_DETAIL = 6000  # characters of output that a failed step keeps


class Refused(Exception):
    """An error of usage: one line."""


class State:
    """Steps of one part. A step is {"result", "ok", "seconds", "detail", ...}; rows of nmt-bench
    and names of finished tests are kept in the step that measured them."""

    def __init__(self, folder, part):
        self.path = pathlib.Path(folder) / f"part-{part}.json"
        self.data = {"part": part, "name": NAMES[part], "machine": {}, "runs": [], "steps": {}}

    def load(self, folder=None):
        """Reads what earlier runs finished, from another folder where one is given."""
        path = self.path if folder is None else pathlib.Path(folder) / self.path.name
        if not path.exists():
            return self
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["part"] != self.data["part"]:
                raise KeyError("part")
            self.data = data
        except (ValueError, KeyError, TypeError) as error:
            raise Refused(f"{path}: not a report of part {self.data['part']}: {error}; "
                          "remove the file to start again") from None
        return self

    def write(self):
        text = json.dumps(self.data, indent=1) + "\n"
        if len(text) > MAX_BYTES:
            raise Refused(f"{self.path}: the report would be larger than {MAX_BYTES >> 20} MiB")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, self.path)

    def step(self, name):
        """The step of this name; an empty one is added."""
        return self.data["steps"].setdefault(name, {})

    def is_done(self, name):
        return "result" in self.data["steps"].get(name, {})

    def finish(self, name, result, ok, seconds, detail="", **values):
        step = self.step(name)
        step.update(values)
        step.update({"result": result, "ok": ok,
                     "seconds": round(step.get("seconds", 0) + seconds, 1),
                     "device": self.data["machine"].get("device", "")})
        if detail:
            step["detail"] = detail[-MAX_DETAIL:]
        self.write()
        print(f"{name}: {result} ({seconds:.0f} s)", flush=True)

    def failures(self):
        return [name for name, step in self.data["steps"].items() if step.get("ok") is False]
