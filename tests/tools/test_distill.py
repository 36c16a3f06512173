#!/usr/bin/env python3
"""nmt-distill, end to end on a tiny teacher. Usage: test_distill.py BIN_FOLDER.

What the steps select, drop and list is computed again in Python from the files of the steps before,
by the definitions in docs/guide/distill.md."""
import collections
import json
import math
import re
import shutil
import signal
import string
import subprocess
import sys
import time
import unittest

from distill_case import (BIN, lines_of, output_of, ROOT, run, SECONDS, TINY, with_values,
                          DistillCase)


def sentence_bleu(hypothesis, reference):
    """BLEU of one sentence by its published definition, for text of words, blanks and final
    punctuation: the orders that the hypothesis has, order by order; an order without a match counts
    1 / (2^k * total) (Post 2018, "exp")."""
    mine, theirs = (re.sub(r"([^\w ])", r" \1 ", text).split() for text in (hypothesis, reference))
    if not mine:
        return 0.0
    logs, halved = [], 1
    for n in range(1, 5):
        grams = collections.Counter(tuple(mine[i:i + n]) for i in range(len(mine) - n + 1))
        if not grams:
            break
        known = collections.Counter(tuple(theirs[i:i + n]) for i in range(len(theirs) - n + 1))
        matches = (grams & known).total()
        if matches == 0:
            halved *= 2
        logs.append(math.log(matches / grams.total() if matches else 1 / (halved * grams.total())))
        if n == 1 and matches == 0:
            return 0.0
    return 100 * math.exp(min(0, 1 - len(theirs) / len(mine)) + sum(logs) / len(logs))


def most_repeated(text):
    """The most occurrences in a row of a sequence of at most 8 words."""
    words = [word.strip(string.punctuation).lower() or word for word in text.split()]
    best = 1
    for length in range(1, 9):
        for begin in range(len(words)):
            times = 1
            while (words[begin:begin + length]
                   == words[begin + times * length:begin + (times + 1) * length] != []):
                times += 1
            if len(words[begin:begin + length]) == length:
                best = max(best, times)
    return best


class Distillation(DistillCase):
    def lists(self):
        """The teacher's n-best lists."""
        lists = collections.defaultdict(list)
        for part in sorted((self.work / "translate").iterdir()):
            for line in lines_of(part):
                number, text, _, _ = line.split(" ||| ")
                lists[int(number)].append(text)
        return [lists[i] for i in range(len(lists))]

    def selected(self):
        rows = [line.split("\t", 1) for part in sorted((self.work / "select").iterdir())
                for line in lines_of(part)]
        return [(float(score), text) for score, text in rows]

    def test_the_teacher_s_lists_are_those_of_nmt_translate(self):
        listed = output_of("nmt-translate", "-m", self.home / "teacher", "-i", self.source,
                           "--n-best", "-b", 3, "--cpu-threads", 1)
        parts = sorted((self.work / "translate").iterdir())
        self.assertEqual([part.name for part in parts], [f"part-{i:06}.nbest" for i in range(3)])
        self.assertEqual(b"".join(part.read_bytes() for part in parts), listed)

    def test_selects_by_sentence_bleu(self):
        others = 0
        for hypotheses, reference, (_, chosen) in zip(self.lists(), lines_of(self.reference),
                                                      self.selected(), strict=True):
            scores = [sentence_bleu(hypothesis, reference) for hypothesis in hypotheses]
            at = scores.index(max(scores))
            self.assertAlmostEqual(sentence_bleu(chosen, reference), scores[at], places=6)
            others += at > 0 and max(scores) > scores[0] + 1e-6
        self.assertGreater(others, 0)  # else the reference would decide nothing

    def test_backward_scores(self):
        sources, selected = lines_of(self.source), self.selected()
        targets = self.home / "targets"
        targets.write_text("".join(text + "\n" for _, text in selected), encoding="utf-8")
        scored = output_of("nmt-score", "-m", self.home / "backward", "-t", targets, self.source,
                           "--word-scores", "--cpu-threads", 1).decode()
        for source, (score, _), line in zip(sources, selected, scored.splitlines(), strict=True):
            words = line.split("WordScores=")[1].split()
            if source:
                self.assertAlmostEqual(score, sum(map(float, words)) / len(words), places=3)

    def kept(self):
        """What the rules of the filter keep, as (backward score, line, source, target), and the
        counts of what they drop."""
        counts, seen, kept = collections.Counter(), set(), []
        for number, (source, (score, target)) in enumerate(zip(lines_of(self.source),
                                                               self.selected(), strict=True)):
            short, long = sorted((len(source), len(target)))
            times = most_repeated(target)
            if not source.strip() or not target.strip():
                counts["empty"] += 1
            elif long > 3 * short + 20:
                counts["length"] += 1
            elif times >= (2 if len(source.split()) <= 4 else 3) and times > most_repeated(source):
                counts["repetition"] += 1
            elif (source, target) in seen:
                counts["duplicate"] += 1
            else:
                kept.append((score, number, source, target))
            seen.add((source, target))
        return kept, counts

    def test_filter_counts(self):
        kept, counts = self.kept()
        dropped = int(0.2 * len(kept))
        result = self.step("filter")["result"]
        for name in ("empty", "length", "repetition", "duplicate"):
            self.assertEqual(result[name], counts[name], name)
        for name in ("empty", "length", "duplicate"):
            self.assertGreater(counts[name], 0, name)
        self.assertEqual((result["pairs"], result["backward"], result["kept"]),
                         (120, dropped, len(kept) - dropped))
        left = sorted(sorted(kept)[dropped:], key=lambda pair: pair[1])
        self.assertEqual(lines_of(self.work / "distilled.source"),
                         [source for _, _, source, _ in left])
        self.assertEqual(lines_of(self.work / "distilled.target"),
                         [target for _, _, _, target in left])
        self.assertNotIn("overlap", result)

    def test_drops_pairs_unlike_their_references(self):
        work, command = self.copied("unlike")
        command = [*command, "--overlap-drop", 0.3, "--until", "filter"]
        self.refused(2, *command, says=("filter", "overlap-drop", "--redo filter"))
        done = run("nmt-distill", *command, "--redo", "filter")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        kept, _ = self.kept()
        left = sorted(kept)[int(0.2 * len(kept)):]
        references = lines_of(self.reference)
        by_overlap = sorted((sentence_bleu(target, references[line]), line, source, target)
                            for _, line, source, target in left)
        dropped = int(0.3 * len(left))
        border = by_overlap[dropped - 1][0], by_overlap[dropped][0]
        self.assertGreater(border[1], border[0] + 1e-6)  # else rounding errors decide
        rest = sorted(by_overlap[dropped:], key=lambda pair: pair[1])
        self.assertEqual(lines_of(work / "distilled.source"), [source for _, _, source, _ in rest])
        self.assertEqual(lines_of(work / "distilled.target"), [target for _, _, _, target in rest])
        result = json.loads((work / "steps/filter.json").read_text(encoding="utf-8"))["result"]
        self.assertEqual((result["backward"], result["overlap"], result["kept"]),
                         (int(0.2 * len(kept)), dropped, len(rest)))

    def test_the_student_is_guided_by_the_alignment_of_nmt_score(self):
        scored = output_of("nmt-score", "-m", self.home / "teacher", self.work / "distilled.source",
                           self.work / "distilled.target", "--alignment",
                           "--cpu-threads", 1).decode()
        links = lines_of(self.work / "distilled.links")
        self.assertEqual(links, [line.split(" ||| ")[1] for line in scored.splitlines()])
        parts = sorted((self.work / "align").iterdir())
        self.assertEqual(len(parts), math.ceil(len(links) / 40))
        self.assertEqual([line for part in parts for line in lines_of(part)], links)
        self.assertEqual(self.step("align")["result"], {"pairs": len(links), "parts": len(parts)})
        shown = [json.loads(line) for line in lines_of(self.work / "student" / "train.jsonl")]
        self.assertTrue([event for event in shown if event.get("event") == "display"
                         and event["alignment"] > 0])
        self.assertIn('"alignment-head": 1', json.dumps(
            json.loads((self.work / "student/config.json").read_text(encoding="utf-8"))))

    def test_guided_alignment_is_switched_off(self):
        work = self.home / "free"
        command = [*self.base, "--output", work, "--until", "align", self.source]
        done = run("nmt-distill", *command, "--guided-alignment-weight", 0)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("align: off", done.stderr.decode())
        self.assertFalse((work / "distilled.links").exists())
        self.assertIn("align      off",
                      output_of("nmt-distill", *command, "--guided-alignment-weight", 0,
                                "--dry-run").decode())
        # Switched on, it runs, and its results stay where it is switched off again.
        self.assertEqual(run("nmt-distill", *command).returncode, 0)
        links = lines_of(work / "distilled.links")
        self.assertEqual(len(links), len(lines_of(work / "distilled.source")))
        self.assertEqual(run("nmt-distill", *command, "--guided-alignment-weight", 0).returncode, 0)
        self.assertEqual(links, lines_of(work / "distilled.links"))
        self.refused(2, *command, "--type", "seq2seq", "--attention", "none", "--heads", 1,
                     says=("attention", "student", "--guided-alignment-weight 0"))
        plain = self.home / "no-attention"
        output_of("nmt-train", self.home / "train.en", self.home / "train.de", "--valid-sets",
                  *self.valid, "--model", plain, "--unit", "gru", "--dim-vocabs", 400,
                  "--type", "seq2seq", "--attention", "none", *with_values(TINY, ["--after", "2u"]))
        without = [plain if word == self.home / "teacher" else word for word in self.base]
        self.refused(2, *without, "--output", self.home / "none", self.source,
                     says=(plain, "seq2seq", "no attention", "--guided-alignment-weight 0"))

    def test_shortlist_is_that_of_the_script(self):
        path = self.home / "list"
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_shortlist.py"),
                        str(self.work / "student"), str(self.work / "distilled.source"),
                        str(self.work / "distilled.target"), "-o", str(path), "--bin", str(BIN),
                        "--cpu-threads", "1", "--precision", "int8"], check=True, timeout=SECONDS,
                       capture_output=True)

        def entries(file):
            return sorted((target, source, round(float(number), 6))
                          for target, source, number in map(str.split, lines_of(file)))
        self.assertEqual(entries(self.work / "shortlist.txt"), entries(path))

    def test_the_table_is_that_of_the_programs(self):
        table = json.loads(self.first.stdout)
        self.assertEqual([row["model"] for row in table["models"]],
                         ["teacher, beam 4", "student, float32, beam 1", "student, int8, beam 1",
                          "student, int8, shortlist, beam 1"])
        shortlist = ["--shortlist", self.work / "shortlist.txt", 100, 100]
        for row, model, options in zip(
                table["models"], (self.home / "teacher", self.work / "student",
                                  self.work / "student-int8", self.work / "student-int8"),
                ([], ["-b", 1], ["-b", 1, "--shortlist", "off"], ["-b", 1, *shortlist])):
            translated = output_of("nmt-translate", "-m", model, "-i", self.valid[0], *options)
            bleu = output_of("nmt-bleu", self.valid[1], "-b", "-w", 6, stdin=translated)
            self.assertAlmostEqual(row["bleu"], float(bleu), places=5)
            weights = json.loads(output_of("nmt-info", model, "--json"))
            self.assertIn(f'{row["weights"]}', json.dumps(weights))
            self.assertEqual(row["megabytes"] * 1e6,
                             (model / "best" / "model.safetensors").stat().st_size)
            self.assertGreater(min(row["words-per-second"], row["sentences-per-second-alone"],
                                   row["first-ms"]), 0)
        self.assertEqual(translated, output_of("nmt-translate", "-m", self.work / "student-int8",
                                               "-i", self.valid[0], "-b", 1))
        self.assertIn("| student, int8, shortlist, beam 1 |",
                      (self.work / "table.txt").read_text(encoding="utf-8"))

    def test_a_second_run_does_nothing(self):
        before = {path: path.stat().st_mtime_ns for path in self.work.rglob("*") if path.is_file()}
        again = run("nmt-distill", *self.all)
        self.assertEqual(again.returncode, 0, again.stderr.decode())
        self.assertEqual(again.stdout, self.first.stdout)
        self.assertEqual(again.stderr.decode().count("finished before"), 8, again.stderr.decode())
        self.assertEqual(before, {path: path.stat().st_mtime_ns
                                  for path in self.work.rglob("*") if path.is_file()})

    def test_a_killed_run_continues(self):
        """Killed after each change of the work directory; the results are those of a run that
        nothing disturbs."""
        work = self.home / "killed"
        command = [*self.all[:self.all.index("--output")], "--output", work,
                   *self.all[self.all.index("--output") + 2:]]
        marks = ["translate/part-000000.nbest", "select/part-000001.tsv", "distilled.target",
                 "align/part-000000.links", "student/latest", "shortlist.txt"]
        for mark in marks:
            process = subprocess.Popen([str(BIN / "nmt-distill"), *map(str, command)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + SECONDS
            while (not (work / mark).exists() and process.poll() is None
                   and time.monotonic() < deadline):
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assertTrue((work / mark).exists(), mark)
        kept = (work / "translate/part-000000.nbest").stat().st_mtime_ns
        done = run("nmt-distill", *command)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(kept, (work / "translate/part-000000.nbest").stat().st_mtime_ns)
        for name in ("distilled.source", "distilled.target", "distilled.links", "shortlist.txt",
                     "student/best/model.safetensors", "student-int8/best/model.safetensors"):
            self.assertEqual((work / name).read_bytes(), (self.work / name).read_bytes(), name)
        self.assertEqual([path.name for path in work.rglob("*") if ".tmp" in path.name
                          or ".part" in path.name], [])

    def test_other_settings_and_redo(self):
        work = self.home / "changed"
        shutil.copytree(self.work, work, symlinks=True)
        at = self.all.index("--output") + 1
        command = [*self.all[:at], work, *self.all[at + 1:]]
        self.refused(2, *command, "--teacher-beam-size", 5,
                     says=("translate", "teacher-beam-size", "3 before, 5 now", "--redo translate"))
        self.refused(2, *command, "--max-ratio", 2, says=("filter", "max-ratio", "--redo filter"))
        self.refused(2, *command, "--dim-rnn", 24, says=("train", "dim-rnn", "--redo train"))
        for option, value, said in (("--beam-size", 2, ("beam-size", "1 before, 2 now")),
                                    ("--length-penalty", 1, ("length-penalty",)),
                                    ("--max-length-factor", 2, ("max-length-factor",))):
            stored = (work / "student-int8/best/model.safetensors").stat().st_mtime_ns
            self.refused(2, *command, option, value, says=("convert", *said, "--redo convert"))
            self.assertEqual(stored,
                             (work / "student-int8/best/model.safetensors").stat().st_mtime_ns)
        done = run("nmt-distill", *command, "--beam-size", 2, "--redo", "convert")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(b"beam 2", done.stdout)
        planned = output_of("nmt-distill", *command, "--redo", "filter",
                            "--dry-run").decode().splitlines()
        self.assertEqual([line.split(maxsplit=1)[1] for line in planned],
                         ["finished"] * 2 + ["to be repeated"] * 6)
        again = run("nmt-distill", *command, "--backward-drop", 0.5, "--redo", "filter",
                    "--until", "filter")
        self.assertEqual(again.returncode, 0, again.stderr.decode())
        self.assertEqual(again.stdout, b"")
        self.assertLess(len(lines_of(work / "distilled.source")),
                        len(lines_of(self.work / "distilled.source")))
        self.assertFalse((work / "student").exists())
        part = work / "select/part-000001.tsv"
        part.write_text("no score\n", encoding="utf-8")
        self.refused(3, *command, "--redo", "filter", says=("part-000001.tsv:1", "score"))

    def test_without_references_and_backward_model(self):
        work = self.home / "plain"
        done = run("nmt-distill", *self.base, "--output", work, "--until", "filter", self.source)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        best = output_of("nmt-translate", "-m", self.home / "teacher", "-i", self.source,
                         "-b", 3).decode().splitlines()
        parts = [line for part in sorted((work / "select").iterdir()) for line in lines_of(part)]
        self.assertEqual(parts, [f"0.000000\t{text}" for text in best])

    def test_defaults(self):
        """The student's architecture, or with another --type the defaults of nmt-train."""
        some = [self.source, "--teacher", self.home / "teacher", "--output", self.home / "none",
                "--dump-config", "full"]

        def dumped(*arguments):
            return dict(line.split(": ", 1)
                        for line in output_of("nmt-distill", *some,
                                              *arguments).decode().splitlines() if ": " in line)
        usual, other = dumped(), dumped("--type", "deep", "--dim-emb", 64)
        for name, value, deep in (("type", "block", "deep"), ("dec-cell", "ssru", "lrn"),
                                  ("dim-emb", "256", "64"), ("dim-rnn", "256", "256"),
                                  ("enc-depth", "6", "6"), ("layer-normalization", "false", "true"),
                                  ("beam-size", "1", "1"), ("attention", "dot", "additive")):
            self.assertEqual((usual[name], other[name]), (value, deep), name)

    def test_bad_settings(self):
        some = [*self.base, "--output", self.home / "none"]
        self.refused(2, *some, says=("train-sets",))
        self.refused(2, *some, self.source, self.home / "nowhere", says=("nowhere",))
        self.refused(3, *some, self.source, self.valid[1], says=("120 lines", "8"))
        self.refused(2, *some, self.source, "--select", "bleu", says=("select", "reference"))
        self.refused(2, *some, self.source, "--overlap-drop", 0.1,
                     says=("overlap-drop", "reference"))
        self.refused(2, *some, self.source, "--shortlist", 5, says=("shortlist", "two"))
        self.refused(2, *some, self.source, "--backward", self.home / "nowhere", says=("nowhere",))
        self.refused(2, *some, self.source, "--redo", "train", "--until", "select",
                     says=("redo", "until"))
        self.refused(2, *some, self.source, "--until", "lunch", says=("until", "lunch", "filter"))
        self.refused(2, *self.base, self.source, says=("output",))
        self.refused(2, "--output", self.home / "none", self.source, says=("teacher",))
        self.refused(2, self.source, "--output", self.home / "none",
                     "--teacher", self.home / "teacher", says=("valid-sets",))
        self.assertFalse((self.home / "none").exists())
        foreign = self.home / "foreign"
        foreign.mkdir()
        (foreign / "letter").touch()
        self.refused(2, *self.base, "--output", foreign, self.source,
                     says=("foreign", "other files"))
        self.assertEqual([path.name for path in foreign.iterdir()], ["letter"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
