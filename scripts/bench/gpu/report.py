"""The page that joins the report files of the parts."""
import predictions
from parts import PARTS
from state import NAMES, State


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def number(value):
    return f"{value:.4g}"


def steps_of(state):
    done = [(name, step["result"], f"{step.get('seconds', 0):.0f}") for name, step in state.data["steps"].items() if "result" in step]
    open_ = [(name, "unfinished", f"{step.get('seconds', 0):.0f}") for name, step in state.data["steps"].items() if "result" not in step]
    return table(("check", "result", "seconds"), done + open_)


def rows_of(step, device):
    """Rows of nmt-bench, with the prediction where there is one."""
    precision, rows = step["precision"], []
    for name, row in step["rows"].items():
        if "error" in row:
            rows.append((name, row["error"], "", "", "", ""))
            continue
        foreseen = predictions.predict(name, row, precision, device)
        rows.append((name, number(row["ms"]), number(row["floor_ms"]) if row["floor_ms"] else "", f"{100 * row['share']:.0f} %" if row["share"] else "",
                     f"{number(foreseen[0])} ({foreseen[1]})" if foreseen else "", f"{row['ms'] / foreseen[0]:.2f}" if foreseen else ""))  # fmt: skip
    extras = [(name, ", ".join(f"{key} {number(value)}" for key, value in row["extras"].items())) for name, row in step["rows"].items() if row.get("extras") and "whole step" in name or "decoding/" in name and row.get("extras")]
    out = table(("row", "ms", "roofline, ms", "share", "predicted, ms", "measured / predicted"), rows)
    return out + (table(("row", "more"), extras) if extras else [])


def curves_of(steps):
    trained = {name.removeprefix("training: "): step for name, step in steps.items() if "curve" in step}
    if not trained:
        return []
    points = sorted({int(update) for step in trained.values() for update in step["curve"]})
    values = {name: {int(update): loss for update, loss in step["curve"].items()} for name, step in trained.items()}
    return ["Label-smoothed loss of the interval before each update:", "",
            *table(("update", *trained), [(point, *(f"{curve[point]:.4f}" if point in curve else "" for curve in values.values())) for point in points]),
            *table(("training", "target tokens/s", "BLEU", "sentences/s", "CUDA graphs"),
                   [(name, f"{step['target_tokens_per_second']:.0f}", step["bleu"], step["sentences_per_second"] or "", step.get("graphs", "")) for name, step in trained.items()])]  # fmt: skip


def part_of(part, state):
    lines = [f"## Part {part}: {NAMES[part]}", "", PARTS[part][0][0].upper() + PARTS[part][0][1:] + ".", ""]
    machine, steps = state.data["machine"], state.data["steps"]
    if not steps:
        return [*lines, "Not run yet.", ""]
    runs = state.data["runs"]
    lines += [f"Device: {machine.get('device', 'none')}. {len(runs)} call{'s' * (len(runs) != 1)}, {sum(r['seconds'] for r in runs):.0f} s.", ""]
    lines += steps_of(state)
    lines += [line for name, step in steps.items() if step.get("rows") for line in (f"### {name}", "", *rows_of(step, machine.get("device", "")))]
    lines += curves_of(steps)
    for name, step in steps.items():
        if step.get("text"):
            lines += [f"### {name}", "", "```", step["text"].rstrip(), "```", ""]
        if step.get("launches"):
            keys = [key for key in step["launches"][0] if key != "kernel"]
            lines += [f"### {name}", "", *table(("kernel", *keys), [(f"`{launch['kernel'][:60]}`", *(launch.get(key, "") for key in keys)) for launch in step["launches"]])]
        if step.get("ok") is False and step.get("detail"):
            lines += [f"### {name}: {step['result']}", "", "```", step["detail"].strip(), "```", ""]
    return lines


def page(folder):
    """The page, and whether every part is finished without a failure."""
    states = {part: State(folder, part).load() for part in PARTS}
    heads = [state.data["machine"] for state in states.values() if state.data["machine"]]
    devices = list(dict.fromkeys(head["device"] for head in heads if head.get("device")))
    lines = ["# GPU", "", "Written by `scripts/bench/gpu_check.sh --join`; [GPU](../guide/gpu.md#checking-a-machine) says how.", "",
             f"Device: {'; '.join(devices) or 'none'}.", ""]  # fmt: skip
    if heads:
        last = heads[-1]
        lines += [f"First log line: `{last['log']}`", "", "```", last["version"], "```", "",
                  *table(("library", "found at"), [(name, f"`{place}`" if place else "not found") for name, place in last["libraries"].items()])]  # fmt: skip
    overview = [(part, NAMES[part], "not run" if not state.data["steps"] else "finished" if state.data.get("finished") else "unfinished",
                 len(state.failures()), f"{sum(r['seconds'] for r in state.data['runs']):.0f}") for part, state in states.items()]  # fmt: skip
    lines += table(("part", "what", "state", "failures", "seconds"), overview)
    for part, state in states.items():
        lines += part_of(part, state)
    good = all(state.data.get("finished") and not state.failures() for state in states.values())
    return "\n".join(lines).rstrip() + "\n", good
