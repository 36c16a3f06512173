#!/usr/bin/env python3
"""nmt-train --guided-alignment: attention becomes a given alignment, which it would not become by
itself; resuming, ranks, bad files. Usage: test_guided_alignment.py BIN_DIR [test names]"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
SECONDS = 300
SMALL = ["--enc-depth", "1", "--dec-depth", "1", "--dim-vocabs", "120", "--mini-batch-words", "300",
         "--cpu-threads", "1", "--disp-freq", "10u", "--valid-freq", "1000u",
         "--save-freq", "1000u", "--valid-metrics", "cross-entropy", "--early-stopping", "0",
         "--dropout", "0", "--label-smoothing", "0", "--learn-rate", "0.01", "--lr-warmup", "20u"]
RNNSEARCH = ["--type", "rnnsearch", "--unit", "gru", "--dim-emb", "32", "--dim-rnn", "32"]
# Two decoder layers, of which the last one is guided, and four heads.
BLOCK = ["--type", "block", "--dec-cell", "ssru", "--encoder-mixer", "attention",
         "--encoder-heads", "4", "--attention", "dot", "--heads", "4",
         "--dim-emb", "32", "--dim-rnn", "32", "--gate-branch", "none", "--feed-forward", "relu",
         "--feed-forward-width", "32", "--dec-depth", "2"]
# mpirun keeps its files in a folder of this test's own: two of them that create a shared one at the
# same time may both fail.
MPI_FILES = tempfile.TemporaryDirectory(prefix="nmt-mpi-")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_orte_tmpdir_base": MPI_FILES.name}


def run(program, *arguments, status=0, before=()):
    done = subprocess.run([*before, BIN / program, *map(str, arguments)], capture_output=True,
                          text=True, timeout=SECONDS, env=ENVIRONMENT)
    if done.returncode != status:
        raise AssertionError(f"{program} {' '.join(map(str, arguments))}: "
                             f"status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
    return done


def with_values(options, *more):
    """Options of which `more` replaces some."""
    return [*(word for name, value in zip(options[::2], options[1::2]) if name not in more
              for word in (name, value)), *more]


def given_links(n):
    """Not what a translation needs: the source word after the one that is translated, or
    the first one."""
    return {((n - j) % n, j) for j in range(n)}


def weights(model):
    return (model / "latest" / "model.safetensors").read_bytes()


def events(model, kind):
    lines = (model / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


class GuidedAlignment(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="nmt-guided-test-"))
        draw = random.Random(5)
        syllables = ["ba", "do", "ki", "lu", "me", "nor", "pa", "ris", "su", "tel"]
        words = sorted({a + b for a in syllables for b in syllables})[:40]
        for name, count in (("train", 600), ("valid", 40)):
            sources, targets, links = [], [], []
            for _ in range(count):
                source = [draw.choice(words) for _ in range(draw.randint(2, 7))]
                sources.append(" ".join(source))
                targets.append(" ".join(word.upper() for word in reversed(source)))
                links.append(" ".join(f"{s}-{t}" for s, t in sorted(given_links(len(source)))))
            for side, lines in (("src", sources), ("trg", targets), ("links", links)):
                (cls.dir / f"{name}.{side}").write_text("".join(line + "\n" for line in lines),
                                                        encoding="utf-8")
        cls.texts = [cls.dir / "train.src", cls.dir / "train.trg"]
        cls.links = cls.dir / "train.links"
        cls.usual = [*cls.texts, "--valid-sets", cls.dir / "valid.src", cls.dir / "valid.trg"]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir, ignore_errors=True)

    def train(self, name, options, *more, status=0, before=()):
        return run("nmt-train", *self.usual, "--model", self.dir / name,
                   *with_values(SMALL, *options), *more, status=status, before=before)

    def guided(self, name, options, *more, **others):
        return self.train(name, options, "--guided-alignment", self.links, *more, **others)

    def error_rate(self, name):
        """Alignment error rate (Och & Ney 2003, all links sure) on text that was not trained on."""
        scored = run("nmt-score", "-m", self.dir / name, self.dir / "valid.src",
                     self.dir / "valid.trg", "--alignment", "--cpu-threads", 1).stdout
        both = total = 0
        for line, expected in zip(scored.splitlines(), (self.dir / "valid.links").read_text(
                encoding="utf-8").splitlines(), strict=True):
            found, expected = set(line.split("|||")[1].split()), set(expected.split())
            both, total = both + len(found & expected), total + len(found) + len(expected)
        return 1 - 2 * both / total

    def refused(self, name, *arguments, status=2, says=()):
        done = self.train(name, RNNSEARCH, *arguments, status=status)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        for word in says:
            self.assertIn(str(word), errors[0])

    def test_attention_becomes_the_given_alignment(self):
        for name, options, after in (("rnnsearch", RNNSEARCH, "200u"), ("block", BLOCK, "400u")):
            self.train(f"{name}-free", options, "--after", after)
            done = self.guided(f"{name}-guided", options, "--guided-alignment-weight", 1,
                               "--after", after)
            self.assertGreater(self.error_rate(f"{name}-free"), 0.6)
            self.assertLess(self.error_rate(f"{name}-guided"), 0.25)
            costs = [event["alignment"] for event in events(self.dir / f"{name}-guided", "display")]
            self.assertLess(costs[-1], 0.3 * costs[0])
            self.assertIn(f" | alignment {costs[-1]:.4f} | ", done.stderr)
            self.assertFalse(any("alignment" in event
                                 for event in events(self.dir / f"{name}-free", "display")))
        config = json.loads((self.dir / "block-guided" / "config.json").read_text(encoding="utf-8"))
        self.assertIn('"alignment-head": 1', json.dumps(config))
        self.assertIn("alignment-head: 1 (chosen: guided-alignment", done.stderr)
        page = self.dir / "page.json"
        run("nmt-explain", "-m", self.dir / "block-guided", "--text", "bado kilu", "--json", page,
            "-o", self.dir / "page.html")
        self.assertEqual(json.loads(page.read_text(encoding="utf-8"))["model"]["alignment_head"], 1)

    def test_resumed_training_is_the_uninterrupted_one(self):
        noise = ["--noise", "0.3", "--bpe-dropout", "0.1", "--optimizer-delay", 2,
                 "--dropout", "0.1", "--max-length", "14", "--keep-last", 9]
        for options in (RNNSEARCH, with_values(BLOCK, "--dec-depth", "1")):
            name = options[1]
            whole = self.guided(f"{name}-whole", options, *noise, "--after", "33u")
            self.guided(f"{name}-parts", options, *noise, "--after", "7u")
            self.guided(f"{name}-parts", options, *noise, "--after", "33u")
            self.assertEqual(weights(self.dir / f"{name}-whole"),
                             weights(self.dir / f"{name}-parts"))
            costs = [[event["alignment"] for event in events(self.dir / model, "display")]
                     for model in (f"{name}-whole", f"{name}-parts")]
            self.assertEqual(costs[0], costs[1])
            self.assertEqual(len(costs[0]), 3)
            self.train(f"{name}-unguided", options, *noise, "--after", "33u")
            self.assertNotEqual(weights(self.dir / f"{name}-whole"),
                                weights(self.dir / f"{name}-unguided"))
            self.assertIn("guided alignment: links of 600 pairs", whole.stderr)

    def test_weight_0_changes_nothing(self):
        self.train("without", BLOCK, "--after", "6u")
        done = self.guided("off", BLOCK, "--after", "6u", "--guided-alignment-weight", 0)
        self.assertEqual(weights(self.dir / "without"), weights(self.dir / "off"))
        self.assertIn("options without effect: guided-alignment (guided-alignment-weight is 0)",
                      done.stderr)
        none = self.train("none", BLOCK, "--after", "6u", "--guided-alignment", "none",
                          "--guided-alignment-weight", 2)
        self.assertEqual(weights(self.dir / "without"), weights(self.dir / "none"))
        self.assertIn("guided-alignment-weight (guided-alignment is none)", none.stderr)

    def test_held_out_pairs_and_empty_lines(self):
        lines = self.links.read_text(encoding="utf-8").splitlines()
        some = self.dir / "some.links"
        some.write_text("".join((line if i % 2 else "") + "\n" for i, line in enumerate(lines)),
                        encoding="utf-8")
        run("nmt-train", *self.texts, "--model", self.dir / "held", *with_values(SMALL, *RNNSEARCH),
            "--after", "4u", "--valid-lines", 20, "--guided-alignment", some)
        run("nmt-train", *self.texts, "--model", self.dir / "held-all",
            *with_values(SMALL, *RNNSEARCH), "--after", "4u", "--valid-lines", 20,
            "--guided-alignment", self.links)
        half, whole = (events(self.dir / name, "run") for name in ("held", "held-all"))
        self.assertTrue(half and whole)
        self.assertNotEqual(weights(self.dir / "held"), weights(self.dir / "held-all"))

    def test_bad_files_are_refused(self):
        lines = self.links.read_text(encoding="utf-8").splitlines()
        words = self.texts[0].read_text(encoding="utf-8").splitlines()[11].split()

        def wrong(line, number=12):
            path = self.dir / "wrong.links"
            path.write_text("".join(text + "\n" for text in [*lines[:number - 1], *line,
                                                             *lines[number:]]), encoding="utf-8")
            return path
        for text, says in (("0-0 1:1", ["'1:1'", "expected the positions of two words"]),
                           (f"{len(words)}-0", [f"{len(words)}-0", "source", len(words)]),
                           (f"0-{len(words)}", ["target", f"from 0 to {len(words) - 1}"])):
            path = wrong([text])
            self.refused("bad", "--guided-alignment", path, status=3, says=[f"{path}:12: ", *says])
        for text, count in (([], 599), (["", ""], 601)):
            path = wrong(text)
            self.refused("bad", "--guided-alignment", path, status=3,
                         says=[path, f"{count} lines", "600"])
        self.refused("bad", "--guided-alignment", self.dir / "missing",
                     says=["missing", "cannot be opened"])
        self.refused("bad", "--guided-alignment", self.dir, says=["directory"])
        self.refused("bad", "--guided-alignment", self.links, "--type", "seq2seq",
                     "--attention", "none", says=["seq2seq", "attention none"])
        self.refused("bad", "--guided-alignment", self.links, "--heads", 2, "--alignment-head", 0,
                     says=["alignment-head", "mean of 2 heads"])
        self.refused("bad", "--guided-alignment", self.links, "--heads", 2, "--alignment-head", 3,
                     says=["alignment-head: 3", "heads is 2"])
        self.assertFalse((self.dir / "bad").exists())

    def test_a_training_that_began_without(self):
        self.train("one-head", RNNSEARCH, "--after", "2u")
        done = self.guided("one-head", RNNSEARCH, "--after", "4u")
        self.assertIn("override guided-alignment: none -> ", done.stderr)
        self.train("heads", BLOCK, "--after", "2u")
        refused = self.guided("heads", BLOCK, "--after", "4u", status=2)
        self.assertIn("guided-alignment: this training began without it", refused.stderr)
        # One that began with it keeps its head.
        self.guided("second", BLOCK, "--alignment-head", 2, "--after", "2u")
        self.train("second", BLOCK, "--after", "4u")
        self.assertIn('"alignment-head": 2', json.dumps(
            json.loads((self.dir / "second" / "config.json").read_text(encoding="utf-8"))))

    @unittest.skipUnless(shutil.which("mpirun") and (BIN.parent / "lib/libnmt_mpi.so").exists(),
                         "no mpirun, or built without MPI")
    def test_two_ranks_train_as_one(self):
        options = [*with_values(BLOCK, "--dropout", "0.1"), "--noise", "0.2",
                   "--precision", "float32"]
        self.guided("one", options, "--after", "20u")
        self.guided("two", options, "--after", "20u",
                    before=["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"])
        for alone, together in zip(events(self.dir / "one", "display"),
                                   events(self.dir / "two", "display"), strict=True):
            self.assertAlmostEqual(alone["alignment"], together["alignment"],
                                   delta=1e-3 * alone["alignment"])
            self.assertAlmostEqual(alone["perplexity"], together["perplexity"],
                                   delta=1e-3 * alone["perplexity"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
