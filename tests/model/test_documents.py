#!/usr/bin/env python3
"""Models with document context (--context-sentences), end to end. Usage: test_documents.py
BIN_DIR [test names]

The German pronoun of every second sentence has the gender of a noun that only the sentence
before it names. A model with one sentence of context learns it; one without cannot do
better than ln 3 per pronoun."""
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
SECONDS = 240
NOUNS = {"lamp": "die Lampe", "door": "die Tür", "clock": "die Uhr", "table": "der Tisch",
         "chair": "der Stuhl", "tree": "der Baum",
         "house": "das Haus", "book": "das Buch", "car": "das Auto"}
PRONOUNS = {"die": "Sie", "der": "Er", "das": "Es"}
ADJECTIVES = {"red": "rot", "old": "alt", "new": "neu", "small": "klein", "good": "gut"}
SETTINGS = ["--unit", "gru", "--dim-emb", "32", "--dim-rnn", "32", "--enc-depth", "1",
            "--dec-depth", "1", "--vocab-type", "words",
            "--dim-vocabs", "100", "--mini-batch-words", "600", "--learn-rate", "0.01",
            "--lr-warmup", "20u", "--dropout", "0", "--noise", "0",
            "--label-smoothing", "0", "--exponential-smoothing", "0", "--cpu-threads", "2",
            "--disp-freq", "50u", "--valid-freq", "100u",
            "--save-freq", "100u", "--early-stopping", "0", "--beam-size", "2"]


def run(tool, *arguments, status=0, stdin=""):
    done = subprocess.run([BIN / tool, *map(str, arguments)], capture_output=True, text=True,
                          timeout=SECONDS, input=stdin)
    if done.returncode != status:
        raise AssertionError(f"{tool} {arguments}: status {done.returncode}, not {status}\n"
                             f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done


def documents(count, seed):
    """Pairs of sentences; a pair of empty ones after each document."""
    chosen = random.Random(seed)
    pairs = []
    for _ in range(count):
        for _ in range(chosen.randint(1, 3)):
            noun, adjective = chosen.choice(list(NOUNS)), chosen.choice(list(ADJECTIVES))
            pairs.append((f"Here is the {noun} .", f"Hier ist {NOUNS[noun]} ."))
            pairs.append((f"It is {adjective} .",
                          f"{PRONOUNS[NOUNS[noun].split()[0]]} ist {ADJECTIVES[adjective]} ."))
        pairs.append(("", ""))
    return pairs


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def contexts(lines, sentences):
    """The definition, once more: the lines before each line, back to an empty one."""
    before = []
    for i in range(len(lines)):
        begin = i
        while begin > 0 and i - begin < sentences and lines[begin - 1]:
            begin -= 1
        before.append(lines[begin:i] if lines[i] else [])
    return before


def events(model, kind):
    lines = (model / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def weights(model):
    return (model / "latest" / "model.safetensors").read_bytes()


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="nmt-documents-test-"))
        for name, count, seed in (("train", 500, 1), ("dev", 60, 2)):
            pairs = documents(count, seed)
            write(cls.home / f"{name}.en", [source for source, _ in pairs])
            write(cls.home / f"{name}.de", [target for _, target in pairs])
        cls.dev = (cls.home / "dev.en").read_text(encoding="utf-8").splitlines()
        cls.references = (cls.home / "dev.de").read_text(encoding="utf-8").splitlines()
        numbered = [(f"{source} {i}", f"{target} {i}") if source else (source, target)
                    for i, (source, target) in enumerate(documents(60, 3))]
        cls.numbered = [write(cls.home / f"numbered.{side}", lines)
                        for side, lines in zip(("en", "de"), zip(*numbered))]
        valid = ["--valid-sets", cls.home / "dev.en", cls.home / "dev.de"]
        cls.log = cls.train("with", "--context-sentences", 1, *valid, "--after", "300u").stderr
        cls.train("without", *valid, "--after", "300u")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home, ignore_errors=True)

    @classmethod
    def train(cls, name, *more, status=0):
        return cls.train_on([cls.home / "train.en", cls.home / "train.de"], name, *more,
                            status=status)

    @classmethod
    def train_on(cls, files, name, *more, status=0):
        return run("nmt-train", *files, "--model", cls.home / name, *SETTINGS, *more, status=status)

    def translate(self, lines, *more, model="with"):
        text = "".join(line + "\n" for line in lines)
        return run("nmt-translate", "-m", self.home / model, "--quiet", *more,
                   stdin=text).stdout.splitlines()

    def refused(self, tool, *arguments, says):
        message = run(tool, *arguments, status=2).stderr
        self.assertIn("error: ", message)
        for words in says:
            self.assertIn(words, message)

    def right_pronouns(self, model):
        pairs = [(out, reference)
                 for out, reference in zip(self.translate(self.dev, model=model), self.references)
                          if reference.split()[:1] in (["Er"], ["Sie"], ["Es"])]
        return sum(out == reference for out, reference in pairs) / len(pairs)

    def test_the_context_is_learned(self):
        def result(name):
            return events(self.home / name, "validation")[-1]

        pronouns = sum(line.split()[0] in PRONOUNS.values() for line in self.references if line)
        tokens = sum(len(line.split()) + 1 for line in self.references if line)
        floor = math.log(3) * pronouns / tokens
        self.assertGreater(result("without")["cross-entropy"], 0.9 * floor)
        self.assertLess(result("with")["cross-entropy"], 0.1 * floor)
        self.assertGreater(result("with")["bleu"], 95)
        self.assertLess(result("without")["bleu"], result("with")["bleu"] - 5)
        self.assertGreater(self.right_pronouns("with"), 0.95)
        self.assertLess(self.right_pronouns("without"), 0.6)

    def test_validation_is_translation(self):
        out = write(self.home / "out.de", self.translate(self.dev, "--beam-size", 2))
        score = run("nmt-bleu", self.home / "dev.de", "-i", out, "-b", "-w", 6).stdout
        best = max(event["bleu"] for event in events(self.home / "with", "validation"))
        self.assertAlmostEqual(float(score), best, places=4)
        entropy = run("nmt-score", "-m", self.home / "with", "--quiet", "--length-penalty", 0,
                      "--summary", "ce-sum", self.home / "dev.en", self.home / "dev.de")
        tokens = sum(len(line.split()) + 1 for line in self.references if line)
        at_best = next(event for event in events(self.home / "with", "validation")
                       if event["bleu"] == best)
        self.assertAlmostEqual(float(entropy.stdout) / tokens, at_best["cross-entropy"], places=4)

    def test_documents_are_apart(self):
        first, second = self.dev[:2], ["It is red .", "It is old ."]
        alone = [*self.translate(first), "", *self.translate(second)]
        self.assertEqual(self.translate([*first, "", *second]), alone)
        self.assertEqual(self.translate([*first, " \t", *second]), alone)
        forms = {self.translate([f"Here is the {noun} .", "It is red ."])[1] for noun in NOUNS}
        self.assertEqual(forms, {"Er ist rot .", "Sie ist rot .", "Es ist rot ."})

    def test_the_same_for_every_batch_and_worker(self):
        whole = self.translate(self.dev, "--n-best", "--alignment", "word")
        for more in (["--mini-batch", 1, "--maxi-batch", 1], ["--mini-batch", 3, "--maxi-batch", 2],
                     ["--maxi-batch-sort", "none"], ["--cpu-threads", 1],
                     ["--workers", 2, "--cpu-threads", 1]):
            self.assertEqual(self.translate(self.dev, "--n-best", "--alignment", "word", *more),
                             whole, more)

    def test_a_pipe_is_answered_line_by_line(self):
        whole = self.translate(self.dev[:9])
        with subprocess.Popen([BIN / "nmt-translate", "-m", self.home / "with", "--quiet"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, bufsize=1) as process:
            for line, expected in zip(self.dev, whole):
                process.stdin.write(line + "\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), expected + "\n")
            process.stdin.close()
            self.assertEqual(process.wait(timeout=SECONDS), 0)

    def test_alignments_are_of_the_sentence(self):
        for line, out in zip(self.dev, self.translate(self.dev, "--alignment", "word")):
            for source, _ in re.findall(r"(\d+)-(\d+)", out.split(" ||| ")[1]) if line else ():
                self.assertLess(int(source), len(line.split()))

    def test_scores_of_lists_are_those_of_the_search(self):
        lists = self.translate(self.dev[:30], "--n-best", "--beam-size", 3)
        source, n_best = (write(self.home / "lists.en", self.dev[:30]),
                          write(self.home / "lists", lists))
        scored = run("nmt-score", "-m", self.home / "with", "--quiet", "--n-best", source,
                     n_best).stdout.splitlines()
        for before, after in zip(lists, scored):
            if not before.split(" ||| ")[1].strip():
                continue
            found = re.search(r"F0= (\S+) Score= (\S+)", after)
            self.assertAlmostEqual(float(found[1]), float(found[2]), places=3)

    def test_held_out_pairs_keep_their_context(self):
        self.train_on(self.numbered, "held-out", "--context-sentences", 3, "--valid-lines", 40,
                      "--after", "100u")
        kept = json.loads((self.home / "held-out/development.json").read_text(encoding="utf-8"))
        lines = self.numbered[0].read_text(encoding="utf-8").splitlines()
        before = dict(zip(lines, contexts(lines, 3)))
        self.assertEqual(len(kept["sources"]), 40)
        self.assertEqual(len(kept["contexts"]), 40)
        self.assertEqual(kept["contexts"], [before[source] for source in kept["sources"]])
        self.assertGreater(sum(map(len, kept["contexts"])), 20)
        # Validation reads these contexts: it is that of documents which end with the
        # held-out pairs.
        sources, targets = [], []
        for source, reference, context in zip(kept["sources"], kept["references"],
                                              kept["contexts"]):
            sources += [*context, source, ""]
            targets += [*("x" for _ in context), reference, ""]
        files = write(self.home / "held.en", sources), write(self.home / "held.de", targets)
        scores = run("nmt-score", "-m", self.home / "held-out", "--quiet", "--length-penalty", 0,
                     *files).stdout.splitlines()
        ends = [i for i, target in enumerate(targets) if target and target != "x"]
        tokens = sum(len(targets[i].split()) + 1 for i in ends)
        self.assertAlmostEqual(-sum(float(scores[i]) for i in ends) / tokens,
                               events(self.home / "held-out", "validation")[-1]["cross-entropy"],
                               places=4)
        outputs = self.translate(sources, "--beam-size", 2, model="held-out")
        self.assertEqual(kept["outputs"], [outputs[i] for i in ends])
        self.assertNotEqual(kept["outputs"],
                            [self.translate([source], "--beam-size", 2, model="held-out")[0]
                             for source in kept["sources"]])
        alone = run("nmt-score", "-m", self.home / "held-out", "--quiet", "--length-penalty", 0,
                    "--summary", "ce-mean-words",
                    write(self.home / "alone.en",
                          [line for source in kept["sources"] for line in (source, "")]),
                    write(self.home / "alone.de", [line for reference in kept["references"]
                                                   for line in (reference, "")])).stdout
        self.assertNotAlmostEqual(float(alone), events(self.home / "held-out",
                                                       "validation")[-1]["cross-entropy"], places=4)
        self.assertNotIn("contexts", json.loads(
            (self.home / "without/development.json").read_text(encoding="utf-8")))

    def test_the_log_has_documents_and_lost_context(self):
        self.assertIn("context: at most 1 preceding source sentences; documents, "
                      "separated by blank source lines: 500;", self.log)
        self.assertIn("100.0 % of the context sentences fit into max-length 100", self.log)
        log = self.train_on(self.numbered, "short", "--context-sentences", 2, "--max-length", 7,
                            "--after", "1u").stderr
        share = re.search(r"([0-9.]+) % of the context sentences fit into max-length 7", log)
        self.assertLess(float(share[1]), 50)

    def test_resume_is_bit_exact(self):
        settings = ["--context-sentences", 2, "--noise-upper", "0.3", "--valid-lines", 20]
        self.train_on(self.numbered, "whole", *settings, "--after", "8u")
        for after in ("3u", "8u"):
            self.train_on(self.numbered, "parts", *settings, "--after", after)
        self.assertEqual(weights(self.home / "whole"), weights(self.home / "parts"))
        self.refused("nmt-train", *self.numbered, "--model", self.home / "parts", *SETTINGS,
                     "--context-sentences", 1, "--noise-upper", "0.3",
                     "--valid-lines", 20, "--after", "9u", says=["context-sentences"])

    def test_other_programs(self):
        model, dev = self.home / "with", [self.home / "dev.en", self.home / "dev.de"]
        self.assertIn("input: 1 preceding source sentences", run("nmt-info", model).stdout)
        page, numbers = self.home / "page.html", self.home / "page.json"
        texts = ["Here is the lamp .", "It is red .", "", "Here is the tree .", "It is red ."]
        run("nmt-explain", "-m", model, "--output", page, "--json", numbers, "--quiet",
            "--text", *texts)
        shown = json.loads(numbers.read_text(encoding="utf-8"))["sentences"]
        self.assertEqual([each["context"] for each in shown], contexts(texts, 1))
        self.assertEqual([each["context_pieces"] for each in shown], [0, 6, 0, 0, 6])
        self.assertEqual(shown[1]["source_pieces"][:6], shown[0]["source_pieces"])
        self.assertEqual([each["translation"] for each in shown], self.translate(texts))
        self.assertEqual([shown[1]["translation"], shown[4]["translation"]],
                         ["Sie ist rot .", "Er ist rot ."])
        # One line and its context are longer than the limit.
        done = run("nmt-explain", "-m", model, "--output", page, "--json", numbers,
                   "--max-length", 9, "--text", *texts)
        shown = json.loads(numbers.read_text(encoding="utf-8"))["sentences"]
        self.assertEqual([each["context"] for each in shown], [[]] * 5)
        self.assertEqual([each["context_pieces"] for each in shown], [0] * 5)
        self.assertEqual(re.findall("warning: .*", done.stderr),
                         ["warning: line 2 has 4 tokens; with it, the model reads 0 of 1 context "
                          "sentences (max-length 9 limits both together); further such lines are "
                          "not reported"])
        # The check translates with context: without it, float32 BLEU would be lower.
        for check in ([], ["--check", *dev]):
            log = run("nmt-convert", "-m", model, "-o", self.home / f"int8-{len(check)}",
                      *check).stderr
            self.assertGreater(float(re.search(r"BLEU ([0-9.]+) in float32", log)[1]), 95)
        self.assertEqual(self.translate(self.dev, model="int8-0").count("Es ist rot ."),
                         self.references.count("Es ist rot ."))

    def test_what_is_not_supported_is_refused(self):
        model, other = self.home / "with", self.home / "without"
        files = [self.home / "train.en", "--valid-sets", self.home / "dev.en", self.home / "dev.de",
                 "--output", self.home / "distilled"]
        self.refused("nmt-distill", "--teacher", model, "--train-sets", *files,
                     says=["teacher", "reads 1 context sentences"])
        self.refused("nmt-distill", "--teacher", other, "--backward", model, "--train-sets", *files,
                     says=["backward", "reads 1 context sentences"])
        self.refused("nmt-distill", "--teacher", other, "--context-sentences", 1, "--train-sets",
                     *files, says=["context-sentences: 1"])
        self.refused("nmt-translate", "-m", model, other, "--text", "It is red .",
                     says=["must read the same number"])
        self.refused("nmt-train", self.home / "train.en", self.home / "train.de",
                     "--model", self.home / "none", "--context-sentences", 17,
                     says=["context-sentences"])

    @unittest.skipUnless((BIN / "nmt-serve").exists(), "nmt-serve is not built")
    def test_the_server_reads_the_context_of_a_text(self):
        folder = self.home / "models"
        folder.mkdir()
        shutil.copytree(self.home / "with", folder / "en-de", symlinks=True)
        with subprocess.Popen([BIN / "nmt-serve", "--port", "0", folder], stderr=subprocess.PIPE,
                              text=True) as server:
            try:
                port = next(found[1] for line in server.stderr if (
                    found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)))

                def ask(q):
                    body = json.dumps({"q": q, "source": "en", "target": "de"}).encode()
                    request = urllib.request.Request(f"http://127.0.0.1:{port}/translate", body,
                                                     {"Content-Type": "application/json"})
                    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                        return json.load(answer)["translatedText"]

                for noun, german in NOUNS.items():
                    out = ask(f"Here is the {noun} .\n\nIt is red .")
                    self.assertEqual(out, f"Hier ist {german} .\n\n{PRONOUNS[german.split()[0]]} "
                                          "ist rot .")
                # Each text is a document: the last one has no noun.
                self.assertEqual(ask(["Here is the lamp .", "It is red ."])[1],
                                 self.translate(["It is red ."])[0])
                self.assertEqual(ask(["Here is the car .", "It is red ."])[1],
                                 self.translate(["It is red ."])[0])
            finally:
                server.terminate()
                server.wait(timeout=SECONDS)


if __name__ == "__main__":
    unittest.main()
