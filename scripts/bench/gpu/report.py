"""The page that joins the report files of the parts."""
import re
import textwrap

import goals
import predictions
from parts import PARTS
from state import NAMES, Refused, State
from training import TRAININGS


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def number(value):
    return f"{value:.4g}"


def wrapped(line):
    """A line of text in lines of at most 100 characters; rows of tables stay whole."""
    return ([line] if line.startswith("|") or len(line) <= 100
            else textwrap.wrap(line, 100, break_long_words=False, break_on_hyphens=False))


def steps_of(state):
    done = [(name, step["result"], f"{step.get('seconds', 0):.0f}")
            for name, step in state.data["steps"].items() if "result" in step]
    open_ = [(name, "unfinished", f"{step.get('seconds', 0):.0f}")
             for name, step in state.data["steps"].items() if "result" not in step]
    return table(("check", "result", "seconds"), done + open_)


def rows_of(step, device):
    """Rows of nmt-bench, with the prediction where there is one."""
    precision, rows = step["precision"], []
    for name, row in step["rows"].items():
        if "error" in row:
            rows.append((name, row["error"], "", "", "", ""))
            continue
        foreseen = predictions.predict(name, row, precision, device)
        rows.append((name, number(row["ms"]), number(row["floor_ms"]) if row["floor_ms"] else "",
                     f"{100 * row['share']:.0f} %" if row["share"] else "",
                     f"{number(foreseen[0])} ({foreseen[1]})" if foreseen else "",
                     f"{row['ms'] / foreseen[0]:.2f}" if foreseen else ""))
    extras = [(name, ", ".join(f"{key} {number(value)}" for key, value in row["extras"].items()))
              for name, row in step["rows"].items() if row.get("extras") and "whole step" in name
                        or "decoding/" in name and row.get("extras")]
    out = table(("row", "ms", "roofline, ms", "share", "predicted, ms", "measured / predicted"),
                rows)
    return out + (table(("row", "more"), extras) if extras else [])


def curves_of(steps):
    trained = {name: steps[f"training: {name}"]
               for name in TRAININGS if "curve" in steps.get(f"training: {name}", {})}
    if not trained:
        return []
    points = sorted({int(update) for step in trained.values() for update in step["curve"]})
    values = {name: {int(update): loss for update, loss in step["curve"].items()}
              for name, step in trained.items()}
    return ["Label-smoothed loss of the interval before each update:", "",
            *table(("update", *trained),
                   [(point, *(f"{curve[point]:.4f}" if point in curve else ""
                              for curve in values.values())) for point in points]),
            *table(("training", "target tokens/s", "BLEU", "sentences/s", "CUDA graphs"),
                   [(name, f"{step['target_tokens_per_second']:.0f}", step["bleu"],
                     step["sentences_per_second"] or "", step.get("graphs", ""))
                    for name, step in trained.items()])]


def part_of(part, state, title):
    lines = [f"## {title}", "", PARTS[part][0][0].upper() + PARTS[part][0][1:] + ".", ""]
    machine, steps = state.data["machine"], state.data["steps"]
    if not steps:
        return [*lines, "Not run yet.", ""]
    runs = state.data["runs"]
    lines += [f"Device: {machine.get('device') or 'none'}. "
              f"{len(runs)} call{'s' * (len(runs) != 1)}, {sum(r['seconds'] for r in runs):.0f} s.",
              ""]
    lines += steps_of(state)
    lines += [line for name, step in steps.items() if step.get("rows")
              for line in (f"### {name}", "", *rows_of(step, machine.get("device", "")))]
    lines += curves_of(steps)
    for name, step in steps.items():
        failed = step.get("ok") is False
        if step.get("text"):
            lines += [f"### {name}" + (f": {step['result']}" if failed else ""), "", "```",
                      step["text"].rstrip(), "```", ""]
        if step.get("launches"):
            keys = [key for key in step["launches"][0] if key != "kernel"]
            lines += [f"### {name}", "",
                      *table(("kernel", *keys),
                             [(f"`{launch['kernel'][:60]}`", *(launch.get(key, "") for key in keys))
                              for launch in step["launches"]])]
        if step.get("kernels"):
            rows = [(f"`{kernel}`", sums["launches"], number(1e-3 * sums["ns"]),
                     number(1e-6 * (sums["read"] + sums["written"])),
                     number((sums["read"] + sums["written"]) / sums["ns"]))
                    for kernel, sums in step["kernels"].items()]
            lines += [f"### {name}", "", *table(("kernel", "launches", "us", "MB", "GB/s"), rows)]
        if failed and step.get("detail") and step["detail"].strip() not in step.get("text", ""):
            lines += [f"### {name}: {step['result']}", "", "```", step["detail"].strip(), "```", ""]
    return lines


def device_of(state):
    return state.data["machine"].get("device", "")


def continues(later, earlier, is_behind):
    """Whether a report continues another one, or is a copy that stands behind it."""
    runs, before = later.data["runs"], earlier.data["runs"]
    return (device_of(earlier) in ("", device_of(later)) and runs[:len(before)] == before
            and (len(runs), is_behind) > (len(before), False))


def reports_of(folders):
    """(part, state) of every report in the folders. Of two reports of a part, where one continues
    the other, the longer one."""
    for folder in folders:
        if not any(State(folder, part).path.exists() for part in PARTS):
            raise Refused(f"{folder}: there is no report (part-N.json)")
    reports = []
    for part in PARTS:
        found = [State(folder, part).load()
                 for folder in folders if State(folder, part).path.exists()]
        reports += [(part, state) for n, state in enumerate(found) if not any(
            continues(other, state, m > n) for m, other in enumerate(found) if m != n)]
    return reports


def machines(reports):
    """The first log line, the version and the libraries of each device."""
    lines, seen = [], []
    for _, state in reports:
        machine = state.data["machine"]
        if not machine.get("device") or machine in seen:
            continue
        seen.append(machine)
        lines += [f"First log line on {machine['device']}: `{machine['log']}`", "", "```",
                  machine["version"], "```", "", *table(("library", "found at"), [
                      (name, f"`{re.sub('^.*/(?=(site|dist)-packages/)', '', place)}`" if place
                             else "not found") for name, place in machine["libraries"].items()])]
    return lines


def page(folders):
    """The page, and whether every part is finished without a failure. A part may have reports of
    several devices."""
    reports = reports_of(folders)
    devices = list(dict.fromkeys(filter(None, (device_of(state) for _, state in reports))))
    lines = ["# GPU report", "",
             "Written by `scripts/bench/gpu_check.sh --join` ([Checking a "
             "GPU](../design/checking-a-gpu.md)). Do not edit this page: "
             "`docs/benchmarks/gpu.md` presents its results.", "",
             f"Device: {'; '.join(devices) or 'none'}.", "", *machines(reports)]
    missing = [part for part in PARTS if part not in dict(reports)]
    overview = [(part, NAMES[part], device_of(state) or "none",
                 "finished" if state.data.get("finished") else "unfinished", len(state.failures()),
                 f"{sum(r['seconds'] for r in state.data['runs']):.0f}") for part, state in reports]
    overview += [(part, NAMES[part], "none", "not run", 0, 0) for part in missing]
    lines += table(("part", "what", "device", "state", "failures", "seconds"),
                   sorted(overview, key=lambda line: line[0]))
    lines += ["## Goals", "", *table(("goal", "must", "aim", "measured"), goals.rows(reports))]
    for part in PARTS:
        own = [state for number, state in reports if number == part]
        for state in own or [State(folders[0], part)]:
            title = (f"Part {part}: {NAMES[part]}"
                     + (f", {device_of(state) or 'no device'}" if len(own) > 1 else ""))
            lines += part_of(part, state, title)
    good = not missing and not any(state.failures() for _, state in reports)
    good = good and all(any(state.data.get("finished")
                            for number, state in reports if number == part) for part in PARTS)
    text = (part for line in "\n".join(lines).split("\n") for part in wrapped(line) or [""])
    return "\n".join(text).rstrip() + "\n", good
