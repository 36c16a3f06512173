"""Rows of nmt-bench, each measured once: a row is kept as soon as it is printed."""
import csv
import re

import runner

ROWS = 12  # of one process
SECONDS = 120  # of one row
NUMBERS = ("ms", "median_ms", "deviation_ms", "flops", "bytes", "floor_ms", "share",
           "peak_flops_per_s", "copied_bytes_per_s", "read_bytes_per_s")


def escaped(name):
    """A row's name as a POSIX extended regular expression."""
    return re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", name)


def row_of(line, columns):
    """A row of the CSV report, or None for another line."""
    values = next(csv.reader([line]))
    if len(values) != len(columns):
        return None
    row = dict(zip(columns, values))
    if row["error"]:
        return {"table": row["table"], "name": row["name"], "error": row["error"]}
    out = {"table": row["table"], "name": row["name"], "bound": row["bound"],
           **{key: float(row[key]) for key in NUMBERS}}
    out["extras"] = {key: float(value)
                     for key, value in (pair.rsplit("=", 1)
                                        for pair in filter(None, row["extras"].split(";")))}
    return out


def measure(check, name, filters, precision, more=()):
    """A step of the part: the rows that the filters select, in their order, without those that
    another step has measured in this precision."""
    state, run = check.state, check.runner.run
    if state.is_done(name):
        return
    common = [check.program("nmt-bench"), "--device", "cuda", *more,
              *(["--precision", precision] if precision != "float32" else [])]
    step = state.step(name)
    rows = step.setdefault("rows", {})
    known = {row for other, done in state.data["steps"].items() if other != name
                            and done.get("precision") == precision for row in done.get("rows", {})}
    listed_rows = []
    for pattern in filters:
        listed = run([*common, "--list", "--filter", pattern], 120)
        if listed.status != 0:
            return state.finish(name, f"FAILED: nmt-bench --list: status {listed.status}", False,
                                listed.seconds, listed.text)
        listed_rows += [line for line in listed.text.splitlines() if re.match(r"[a-z -]+/", line)
                        and line not in listed_rows]
    if not listed_rows:
        return state.finish(name,
                            f"FAILED: no row of nmt-bench matches {' '.join(filters)}", False, 0)
    wanted = [row for row in listed_rows if row not in known]
    step["precision"] = precision
    while todo := [row for row in wanted if row not in rows]:
        group, columns = todo[:ROWS], []

        def on_line(line):
            nonlocal columns
            if line.startswith("table,name,"):
                columns = line.strip().split(",")
            elif columns and not line.startswith("#"):
                row = row_of(line, columns)
                if row:
                    rows[f"{row['table']}/{row['name']}"] = row
                    if (not row["name"].startswith("(")
                        and f"{row['table']}/{row['name']}" in wanted):
                        print(f"  {row['table']}/{row['name']}: "
                              f"{row.get('error') or '%.4g ms' % row['ms']}", flush=True)
                    state.write()

        early = check.runner.begins_early()
        try:
            done = run([*common, "--format", "csv",
                        "--filter", f"^({'|'.join(map(escaped, group))})$"],
                       SECONDS * len(group), on_line)
        except runner.OutOfTime:
            if early and group[0] not in rows:
                table, row = group[0].split("/", 1)
                rows[group[0]] = (
                    {"table": table, "name": row,
                     "error": f"takes more than the {check.runner.limit:.0f} s of this part"})
            state.write()
            raise
        step["seconds"] = round(step.get("seconds", 0) + done.seconds, 1)
        rest = [row for row in group if row not in rows]
        if rest:  # the program ended before this row's report
            table, row = rest[0].split("/", 1)
            why = (f"stopped after {SECONDS * len(group)} s" if done.late
                   else f"the program ended with status {done.status}")
            rows[rest[0]] = {"table": table, "name": row,
                             "error": why + ": " + done.text[-300:].strip().replace("\n", " ")}
        state.write()
    wrong = [row for row in wanted if "error" in rows[row]]
    state.finish(name, f"{len(wanted)} rows" if not wrong
                       else f"FAILED: {len(wrong)} of {len(wanted)} rows", not wrong, 0,
                 "\n".join(f"{row}: {rows[row]['error']}" for row in wrong))
