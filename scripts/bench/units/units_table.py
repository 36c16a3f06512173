"""Table and figures of compare_units.py: reads the results of trainings, translations and --speed,
and writes Markdown and CSV."""
import csv
import filecmp
import json
import os
import pathlib
import re
import statistics
import subprocess
import shlex
import sys
import time

from common import arguments, system, welch

COLUMNS = ["unit", "status", "parameters", "updates", "seeds", "tokens_per_second", "tokens_ratio",
           "ms_batch_1", "ms_batch_64", "bleu", "ci", "bleu_sd",
           "p_value", "p_seeds", "dev_bleu", "brevity", "why"]


def hypothesis(test):
    """File name of the translation of a test set, from 0."""
    return f"hypothesis.{test + 1}" if test else "hypothesis"


def write_whole(path, text):
    """Writes a file atomically."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.rename(path)


def events(model, kind):
    lines = (pathlib.Path(model) / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event.get("event") == kind]


def parameters(programs, model, log):
    """From nmt-info; without that program from the log of nmt-train."""
    if (programs / "nmt-info").exists():
        done = subprocess.run([programs / "nmt-info", "-m", model, "--json"],
                              capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)["parameters"]["total"]
    words = re.findall(r"model: .* ([\d,]+) weights",
                       log.read_text(encoding="utf-8", errors="replace"))
    return int(words[-1].replace(",", "")) if words else None


def read_training(programs, model, log):
    displays, validations = events(model, "display"), events(model, "validation")
    updates = max((event["updates"] for event in displays + validations + events(model, "end")),
                  default=None)
    return {"parameters": parameters(programs, model, log), "updates": updates,
            "seconds": displays[-1]["seconds"] if displays else None,
            "training_tokens_per_second": statistics.median(d["target_tokens_per_second"]
                                                            for d in displays) if displays
                                          else None,
            "curve": [(v["updates"], v["bleu"]) for v in validations if v.get("bleu") is not None]}


def bleu(programs, reference, systems, *more):
    command = [programs / "nmt-bleu", reference, "-i", *systems, "-f", "json", "-w", "4",
               "-q", *more]
    return json.loads(subprocess.run([str(word) for word in command], check=True,
                                     capture_output=True, text=True).stdout)


def result_of(args, unit, seed):
    file = args.work / unit.folder / f"seed-{seed}" / "result.json"
    if not file.exists():
        return {"status": "failed", "why": "not trained yet"}
    result = arguments.read_object(file, "result of a training", "status",
                                   advice="remove it, and run without --speed")
    if (result["status"] == "ok"
        and result.get("budget", args.budgets[unit.name]) != args.budgets[unit.name]):
        return {"status": "failed", "why": "trained with another budget: run without --speed"}
    if result["status"] == "ok" and not all(is_translated(args, file.parent, result, test)
                                            for test in range(len(args.tests))):
        return {"status": "failed",
                "why": "trained, but these test sets are not translated: run without --speed"}
    return result


def lines(path):
    return len(path.read_bytes().removesuffix(b"\n").split(b"\n"))


def is_translated(args, folder, result, test):
    """Whether a finished training has a translation of this test set. Results of older versions do
    not tell; in them the number of lines counts."""
    output = folder / hypothesis(test)
    if not output.exists():
        return False
    if "tests" in result:
        return result["tests"][test : test + 1] == [args.test_digests[test]]
    return lines(output) == lines(pathlib.Path(args.tests[test][0]))


def is_speed(measured):
    """Whether the values have the types that --speed writes."""
    units, conditions = measured["units"], measured["conditions"]
    if not all(isinstance(part, dict) for part in (units, conditions, measured.get("inputs", {}))):
        return False
    if not all(isinstance(conditions.get(name), float | int)
               for name in ("rounds", "updates", "threads", "load")) or "date" not in conditions:
        return False
    return all(isinstance(figures, dict)
               and all(isinstance(value, str if name == "why" else float | int)
                       for name, value in figures.items()) for figures in units.values())


def last_speed(args):
    """What the last --speed wrote, or None."""
    file, what, advice = (args.work / "speed.json", "record of --speed",
                          "remove it, and run with --speed again")
    if not file.exists():
        return None
    measured = arguments.read_object(file, what, "units", "conditions", advice=advice)
    if not is_speed(measured):
        arguments.fail(f"{file}: is no {what}: it is damaged; {advice}")
    return measured


def speeds(args):
    """Figures of the last --speed by unit, without units whose inputs have changed since."""
    measured = last_speed(args)
    if measured is None:
        return {}
    before, now = measured.get("inputs", {}), args.speed_inputs
    return {name: figures for name, figures in measured["units"].items() if name not in before
                                    or name not in now or before[name] == now[name]}


def score(programs, args, unit, seeds, test=0):
    """BLEU and its 95 % interval for each seed: sacreBLEU's bootstrap with 1,000 resamples."""
    scores = []
    for seed in seeds:
        one = bleu(programs, args.tests[test][1],
                   [args.work / unit.folder / f"seed-{seed}" / hypothesis(test)], "--confidence")
        brevity = float(re.search(r"BP = ([\d.]+)", one["verbose_score"])[1])
        interval = float(one.get("confidence_var", 0))  # missing when every sentence scores 0
        scores.append((float(one["score"]), interval, brevity))
    return scores


def p_values(programs, args, unit, baseline, seeds, test=0):
    """p-value of the paired bootstrap against the baseline with the same seed, where that has a
    result of these texts and this budget."""
    values = []
    for seed in seeds:
        systems = [args.work / one.folder / f"seed-{seed}" / hypothesis(test)
                   for one in (baseline, unit)]
        if result_of(args, baseline, seed)["status"] != "ok":
            continue
        if filecmp.cmp(*systems, shallow=False):
            # the bootstrap compares with >, so that no difference at all would be its smallest p
            values.append(1.0)
        else:
            values.append(bleu(programs, args.tests[test][1], systems,
                               "--paired-bs")[1]["BLEU"]["p_value"])
    return values


def rows(programs, args, units):
    """One row per unit: means over its finished seeds; interval and p-value of the median seed;
    p-value of a test over the seeds."""
    speed_of = speeds(args)
    baseline = next((unit for unit in units if unit.name == args.baseline), None)
    table, bleu_of = [], {}
    for unit in units:
        results = {seed: result_of(args, unit, seed) for seed in args.seeds}
        good = [seed for seed, result in results.items() if result["status"] == "ok"]
        row = dict.fromkeys(COLUMNS) | {"unit": unit.name, "status": "ok" if good else "failed",
                                        "seeds": len(good)}
        row["why"] = ("; ".join(f"seed {seed}: {result['why']}"
                                for seed, result in results.items() if result["status"] != "ok")
                      or None)
        if good:
            scores = score(programs, args, unit, good)
            row["parameters"], row["updates"] = results[good[0]]["parameters"], round(
                statistics.mean(results[seed]["updates"] for seed in good))
            row["bleu"], row["ci"] = (statistics.mean(s[0] for s in scores),
                                      statistics.median(s[1] for s in scores))
            row["brevity"] = statistics.mean(s[2] for s in scores)
            bleu_of[unit] = [s[0] for s in scores]
            row["bleu_sd"] = statistics.stdev(s[0] for s in scores) if len(scores) > 1 else None
            curves = [results[seed]["curve"] for seed in good if results[seed]["curve"]]
            row["dev_bleu"] = (statistics.mean(max(point[1] for point in curve) for curve in curves)
                               if curves else None)
            row["curve"] = curves[0] if curves else []
            if baseline and unit is not baseline:
                values = p_values(programs, args, unit, baseline, good)
                row["p_value"] = statistics.median(values) if values else None
            row["other_tests"] = []  # mean BLEU, median p-value
            for test in range(1, len(args.tests)):
                values = (p_values(programs, args, unit, baseline, good, test) if baseline
                          and unit is not baseline else [])
                row["other_tests"].append(
                    (statistics.mean(s[0] for s in score(programs, args, unit, good, test)),
                     statistics.median(values) if values else None))
        mine = speed_of.get(unit.name, {})
        row["tokens_per_second"], row["ms_batch_1"], row["ms_batch_64"] = (mine.get("tokens"),
                                                                           mine.get("ms_1"),
                                                                           mine.get("ms_batch"))
        base = speed_of.get(args.baseline, {}).get("tokens")
        row["tokens_ratio"] = mine["tokens"] / base if base and "tokens" in mine else None
        if mine.get("why"):
            row["why"] = "; ".join(filter(None, [row["why"], f"speed: {mine['why']}"]))
        table.append(row)
    for unit, row in zip(units, table):
        if baseline in bleu_of and unit in bleu_of and unit is not baseline:
            row["p_seeds"] = welch.two_sided_p(bleu_of[unit], bleu_of[baseline])
    return table


def shown(row, key, form):
    return "" if row[key] is None else form.format(row[key])


def shown_p(row, key):
    return "< 0.001" if row[key] is not None and row[key] < 0.0005 else shown(row, key, "{:.3f}")


def markdown(args, table, command):
    base = args.baseline
    head = ["unit", "parameters", "updates", "training, target tokens/s", f"over {base}",
            "ms a sentence, batch 1", "batch 64", "BLEU (95 %)", f"p against {base}", "over seeds",
            "best dev BLEU"]
    head += [f"{pathlib.Path(reference).name} (p)" for _, reference in args.tests[1:]]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in table:
        score_text = (shown(row, "bleu", "{:.1f}") + shown(row, "ci", " ± {:.1f}")
                      + shown(row, "bleu_sd", " (sd {:.2f})"))
        cells = [f"`{row['unit']}`", shown(row, "parameters", "{:,}"),
                 shown(row, "updates", "{:,}"), shown(row, "tokens_per_second", "{:,.0f}"),
                 shown(row, "tokens_ratio", "{:.2f}"),
                 shown(row, "ms_batch_1", "{:.1f}"), shown(row, "ms_batch_64", "{:.2f}"),
                 score_text if row["status"] == "ok" else "failed",
                 shown_p(row, "p_value"), shown_p(row, "p_seeds"), shown(row, "dev_bleu", "{:.1f}")]
        others = row.get("other_tests", [(None, None)] * (len(args.tests) - 1))
        cells += ["" if mean is None else f"{mean:.1f}" + (f" ({p:.3f})" if p is not None else "")
                  for mean, p in others]
        lines.append("| " + " | ".join(cells) + " |")
    budget = (f"the time in which {args.equal_time} computes {args.updates:,} updates"
              if args.equal_time else f"{args.updates:,} updates" if args.updates
              else "until early stopping" if args.until_converged else f"{args.minutes:g} minutes")
    notes = [f"Each unit: {budget}, seeds {', '.join(map(str, args.seeds))}, {args.threads} "
             f"{'thread' if args.threads == 1 else 'threads'}. "
             f"{time.strftime('%Y-%m-%d')}, {system.processor_name()}, {os.cpu_count()} "
             "processors."]
    notes.append("p: paired bootstrap over the sentences, median of the seeds; over seeds: "
                 "Welch's t-test, which counts the variance between trainings.")
    if measured := last_speed(args):
        c = measured["conditions"]
        threads = "1 thread, processor" if c["threads"] == 1 else f"{c['threads']} threads, wall"
        notes.append(
            f"Speed: medians of {c['rounds']} rounds over all units in turn, {c['updates']} "
            "updates each of which the second half counts, "
            f"{threads} time, {c['date']}, load average after it {c['load']:.1f}.")
    notes += [f"{row['unit']}: {row['why']}" for row in table if row["why"]]
    return ("\n".join(lines) + "\n\n" + "\n".join(f"- {note}" for note in notes)
            + f"\n\n    {shlex.join(command)}\n")


def write(args, table, command):
    write_whole(args.work / "table.md", markdown(args, table, command))
    temporary = args.work / "table.csv.tmp"
    with open(temporary, "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(table)
    temporary.rename(args.work / "table.csv")
    write_whole(args.work / "curves.json",
                json.dumps({row["unit"]: row.get("curve", []) for row in table}) + "\n")


def python_with_matplotlib(root):
    """A Python with matplotlib: this one, or that of .venv, which is created if needed. Prints a
    message and returns None if that fails."""
    venv = root / ".venv" / "bin" / "python"
    for python in (sys.executable, venv):
        if pathlib.Path(python).exists() and subprocess.run([python, "-c", "import matplotlib"],
                                                            capture_output=True).returncode == 0:
            return python
    made = venv.exists() or subprocess.run([sys.executable, "-m", "venv", root / ".venv"],
                                           capture_output=True).returncode == 0
    pip = [venv, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
           "--timeout", "20", "matplotlib"]
    if made and subprocess.run(pip, capture_output=True).returncode == 0:
        return venv
    return None


def draw(args, root):
    python = python_with_matplotlib(root)
    if python is None:
        print("no figures: matplotlib is missing and could not be installed into "
              f"{root / '.venv'}; the table is complete", flush=True)
        return
    done = subprocess.run([python, root / "scripts/bench/units/plot_units.py", args.work,
                           args.baseline], capture_output=True, text=True)
    print(done.stdout.strip() if done.returncode == 0
          else f"no figures: {done.stderr.strip().splitlines()[-1]}", flush=True)
