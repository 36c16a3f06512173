#!/usr/bin/env python3
"""What each option of nmt-train means for a training that is resumed: one with another value is
refused, logged as an override or ignored, by what the option decides.

    test_option_roles.py BIN_DIR

Every option of the program stands in one of the lists here, so that a new option without a role, or
with another one, fails."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 120

# Another value for each option than the first run has. REFUSED: one reason for each group.
SHAPE = {
    "type": "gnmt", "context-sentences": "1", "context-aware": True, "enc-cell": "sru",
    "dec-cell": "sru", "reset": "after",
    "activation": "identity", "forget-gate": "paper", "input-gate": "complement", "input": "x",
    "positions": "7", "state-heads": "2", "state-width": "8", "bias": True, "convolution": "3",
    "groups": "2", "rearrange": True, "dense-first-decoder-layer": True, "dim-emb": "12",
    "dim-rnn": "12", "dim-enc-upper": "6", "attention-projections": True, "upper-context": False,
    "enc-depth": "3", "dec-depth": "3", "layer-normalization": False, "attention": "dot",
    "heads": "2", "alignment-head": "1", "dim-attention": "6", "attention-query": "first-layer",
    "tied-embeddings": False, "tied-embeddings-src": True, "tied-embeddings-all": True,
    "encoder-mixer": "attention", "encoder-directions": "joined", "encoder-heads": "4",
    "encoder-positions": "none", "gate-branch": "silu", "unit-projection": False,
    "feed-forward": "relu", "decoder-feed-forward": "none", "feed-forward-width": "9",
    "embedding-scale": "none", "lm-output": "tanh",
    "tagging-network": "basic", "crf": True, "dim-char-emb": "9", "dim-char-rnn": "9",
}
INITIALIZATION = {"init": "uniform", "init-scale": "0.5", "gate-init": "none", "gate-bias": "1",
                  "gate-steps": "9"}
VOCABULARY = {"dim-vocabs": "90", "vocab-type": "words", "joint-vocab": False,
              "sentencepiece-max-lines": "1000",
              "word-min-count": "3", "word-column": "1", "tag-column": "3"}
HOLD_OUT = {"valid-lines": "9", "seed": "7"}
REFUSED = {"shape": SHAPE, "initialization": INITIALIZATION, "vocabulary": VOCABULARY,
           "hold-out": HOLD_OUT, "state": {"optimizer": "sgd"},
           "average": {"exponential-smoothing": "0.01", "average-after": "3"}}
# Logged as an override; the training continues.
PROCEDURE = {
    "labels": "pair",
    "dropout-emb": "0.3", "dropout-rnn": "0.3", "dropout-readout": "0.3",
    "dropout-state": "0.3", "dropout-variational": True, "max-length": "90",
    "max-length-unit": "words", "max-length-crop": True, "mini-batch": "50",
    "mini-batch-words": "150", "maxi-batch": "50", "optimizer-delay": "2",
    "optimizer-params": "0.8", "learn-rate": "0.1", "schedule": "constant", "lr-warmup": "7u",
    "lr-decay-inv-sqrt": "9u", "rnmt-schedule": ["4", "5", "6", "7"],
    "lr-floor": "0.0001", "lr-cooldown": "0.5", "lr-decay": "0.5",
    "lr-decay-strategy": "epoch", "lr-decay-start": ["2", "1"], "cost-type": "ce-mean",
    "clip-norm": "1", "label-smoothing": "0.2", "after": "1u", "max-minutes": "99",
    "disp-freq": "3u", "save-freq": "3u", "keep-last": "3", "keep-best": "2", "valid-freq": "3u",
    "valid-metrics": "perplexity", "valid-max-sentences": "3", "early-stopping": "3",
    "beam-size": "3", "normalize": "0.5", "length-penalty": "0.7", "coverage-penalty": "0.1",
    "max-length-factor": "2", "max-length-offset": "9", "allow-unk": True,
    "valid-max-length": "99", "valid-mini-batch": "9", "bptt": "9", "dropout-weights": "0.1",
    "noise-upper": "0.2", "noise-title": "0.2", "noise-typos": "0.2", "noise-punctuation": "0.3",
    "bpe-dropout": "0.2", "guided-alignment-weight": "0.2",
}
COMPUTE = {"products": "auto", "precision": "bfloat16"}
# Options that one of these switches off.
REPLACED = {"normalize": ["length-penalty"]}
# Neither refused nor logged: where a run takes place.
LOCATION = {"cpu-threads": "2", "workers": "2", "log-level": "debug", "rank-timeout": "99"}
# Locations whose change the test makes by other means, or that need a GPU.
LOCATION_ELSEWHERE = {"model", "train-sets", "valid-sets", "device", "vocabs", "no-reload"}
# Made by the test itself.
FILES = {"guided-alignment"}
# Another task reads other files: test_language_model.py.
TASK = {"task"}
GPU = {"cuda-graphs": "on", "recurrences": "cudnn"}

FIRST = {"dim-vocabs": "80", "dim-emb": "8", "dim-rnn": "8", "enc-depth": "1", "dec-depth": "1",
         "mini-batch-words": "200", "valid-lines": "8", "learn-rate": "0.01", "lr-warmup": "5u",
         "valid-freq": "2u", "save-freq": "2u", "disp-freq": "2u", "after": "2u",
         "dropout-emb": "0.1", "dropout-rnn": "0.1", "dropout-readout": "0.1",
         "attention-query": "recurrent", "valid-metrics": "cross-entropy", "cpu-threads": "1",
         "products": "own", "tied-embeddings-all": False, "gate-init": "constant"}


def words(settings):
    """The settings as a command line."""
    out = []
    for name, value in settings.items():
        if isinstance(value, bool):
            out.append(f"--{name}" if value else f"--no-{name}")
        else:
            out += [f"--{name}", *(value if isinstance(value, list) else [value])]
    return out


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "80",
                        "--valid", "8", "--test", "1", cls.home], check=True, timeout=SECONDS)
        done = cls.train("first", words(FIRST))
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def train(cls, model, options, corpus=None):
        texts = corpus or (cls.home / "train.en", cls.home / "train.de")
        return subprocess.run([BIN / "nmt-train", *texts, "--model", cls.home / model, *options],
                              capture_output=True, text=True, timeout=SECONDS)

    def resume(self, changed, corpus=None, without=()):
        """The first run's command with other values, on a copy of its directory."""
        copy = self.home / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.home / "first", copy, symlinks=True)
        settings = {name: value for name, value in FIRST.items() if name not in without}
        return self.train("copy", words({**settings, **changed}), corpus)

    def overridden(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.findall(r"override (\S+):", done.stderr)

    def test_every_option_has_a_role(self):
        dump = self.train("none", ["--dump-config", "full"]).stdout
        # what is chosen unless it is set is a comment
        options = set(re.findall(r"^(?:# )?([a-z][a-z0-9-]*):", dump, re.M))
        lists = list(REFUSED.values())
        lists += [PROCEDURE, COMPUTE, LOCATION, LOCATION_ELSEWHERE, FILES, TASK, GPU]
        named = [name for names in lists for name in names]
        self.assertEqual(len(named), len(set(named)), "an option stands in two lists")
        self.assertEqual(options - set(named), set(), "options without a role in this test")
        self.assertEqual(set(named) - options, set(), "not options of nmt-train")

    def test_what_made_the_weights_is_refused(self):
        reasons = {}
        for group, names in REFUSED.items():
            for name, value in names.items():
                with self.subTest(option=name):
                    done = self.resume({name: value})
                    if f"options without effect: {name} (" in done.stderr:
                        continue  # test_settings_without_effect_may_change
                    self.assertEqual(done.returncode, 2, done.stderr)
                    told = re.findall(rf"cannot go on[^\n]*\b{name} [^\n]*\(([^()]*)\)",
                                      done.stderr)
                    self.assertEqual(len(told), 1, done.stderr)
                    reasons.setdefault(told[0], set()).add(group)
                    self.assertEqual(reasons[told[0]], {group}, "a reason of two groups")
        self.assertEqual(len(reasons), len(REFUSED), reasons)

    def test_settings_without_effect_may_change(self):
        settings = self.home / "idle.yaml"
        settings.write_text("crf: true\ndim-char-emb: 7\nrearrange: true\n", encoding="utf-8")
        self.assertEqual(self.overridden(self.resume({"config": str(settings)})), [])

    def test_what_steers_is_logged(self):
        for name, value in {**PROCEDURE, **COMPUTE}.items():
            with self.subTest(option=name):
                self.assertEqual(self.overridden(self.resume({name: value})),
                                 [name, *REPLACED.get(name, [])])

    def test_files_that_steer_are_logged(self):
        links = self.home / "links"
        links.write_text("0-0\n" * 80, encoding="utf-8")
        self.assertEqual(self.overridden(self.resume({"guided-alignment": str(links)})),
                         ["guided-alignment"])

    def test_locations_are_not_logged(self):
        for name, value in LOCATION.items():
            with self.subTest(option=name):
                self.assertEqual(self.overridden(self.resume({name: value})), [])
        moved = self.home / "moved"
        moved.mkdir()
        for side in ("en", "de"):
            shutil.copy(self.home / f"train.{side}", moved)
        done = self.resume({}, (moved / "train.en", moved / "train.de"))
        self.assertEqual(self.overridden(done), [])

    def test_what_was_chosen_is_kept(self):
        """Settings that nmt-train chooses where they are not given, and the vocabulary."""
        chosen = [name for name in FIRST if name not in ("cpu-threads", "products", "valid-metrics",
                                                         "after")]
        self.assertEqual(self.overridden(self.resume({}, without=chosen)), [])
        self.assertEqual(
            self.overridden(self.resume({"vocabs": str(self.home / "first/vocab.spm")})),
            [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
