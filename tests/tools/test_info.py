#!/usr/bin/env python3
"""nmt-info against the papers' totals and against counts by hand, from the files in configs/ and
from a model directory. Usage: test_info.py BIN_DIR [test names]"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"


def run(*args, tool="nmt-info", status=0):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, text=True,
                          timeout=300)
    if done.returncode != status:
        raise AssertionError(f"{tool} {' '.join(map(str, args))}: status {done.returncode}, "
                             f"not {status}\n{done.stdout}{done.stderr}")
    return done


def info(recipe, unit=None, *more):
    overlay = ["--unit", unit] if unit else []
    return json.loads(run("--json", "--config", CONFIGS / f"{recipe}.yaml", *overlay, *more).stdout)


class InfoTest(unittest.TestCase):
    def test_totals_of_the_atr_paper(self):
        # ATR paper, table 4, in millions to the printed digit, with DeepRNNSearch; RAN's
        # total is units.md's.
        for recipe, unit, more, millions in [("atr", "gru", [], 83.5), ("atr", "lstm", [], 93.3),
                                             ("atr", "ran", [], 79.5), ("atr", "atr", [], 67.8),
                                             ("atr", "atr", ["--context-aware"], 63.1),
                                             ("deep-rnnsearch", "gru", [], 143.0)]:
            with self.subTest(recipe=recipe, unit=unit, more=more):
                told = info(f"wmt14-en-de-{recipe}", unit, *more)["parameters"]
                self.assertAlmostEqual(told["total"] / 1e6, millions, delta=0.06)
                self.assertEqual(told["embeddings"], 2 * 40_000 * 620)

    def test_recipes_print_their_totals(self):
        for recipe, more, millions in [("wmt14-en-de-gnmt-atr", [], 91.3),
                                       ("wmt14-en-de-gnmt-atr", ["--attention-projections"], 92.1),
                                       ("wmt14-en-de-deep-rnnsearch", [], 143.0)]:
            with self.subTest(recipe=recipe, more=more):
                self.assertAlmostEqual(info(recipe, None, *more)["parameters"]["total"] / 1e6,
                                       millions, delta=0.05)
                text = (CONFIGS / f"{recipe}.yaml").read_text(encoding="utf-8").split(
                    "# Architecture")[1].split("\ntype")[0]
                self.assertIn(f"{millions}M", text)

    # LRN paper, table 3, in whole millions with the tables.
    LRN = {"gru": 206, "atr": 122, "sru": 170, "lrn": 143, "olrn": 164}

    def test_totals_of_the_lrn_paper(self):
        # Two tables of 55,400 pieces in all, of which the papers' totals to the printed digit
        # follow; the recipe has one vocabulary of 32,000.
        for unit, millions in self.LRN.items():
            with self.subTest(unit=unit):
                told = info("wmt14-en-de-lrn", unit, "--no-joint-vocab", "--dim-vocabs", 27_700,
                            27_700)["parameters"]
                self.assertEqual(round(told["total"] / 1e6), millions)
                self.assertEqual(info("wmt14-en-de-lrn", unit)["parameters"]["embeddings"],
                                 2 * 32_000 * 1024)

    def test_totals_of_the_students(self):
        # Blocks by hand: tables, softmax bias, layers and last norms. The published total
        # of tiny11 is 16.9M.
        def layers(count, mixer, inner, norms, e=256):
            return count * (mixer + inner + norms * 2 * e) + 2 * e

        e, symbols = 256, 32_000
        attention, relu = 4 * e * e, 2 * e * 1536 + 1536 + e
        ssru = 2 * e * e + e
        tiny = symbols * (e + 1) + layers(6, attention, relu,
                                          2) + layers(2, ssru + attention, relu, 3)
        self.assertEqual(info("students/tiny11")["parameters"]["total"], tiny)
        self.assertAlmostEqual(tiny / 1e6, 16.9, delta=0.05)
        self.assertEqual(info("students/tiny11", None, "--unit-projection")["parameters"]["total"],
                         tiny + 2 * e * e)
        h = 344
        gated, swiglu = e * 3 * h + 3 * h + h + 2 * e * h, 3 * e * 768
        griffin = symbols * (e + 1) + layers(6, gated, swiglu,
                                             2) + layers(2, gated + attention, swiglu, 3)
        self.assertEqual(info("students/griffin")["parameters"]["total"], griffin)
        page = (ROOT / "docs/reference/models.md").read_text(encoding="utf-8")
        for total in (tiny, griffin):
            self.assertIn(f"{total:,}", page)

    def test_totals_of_the_group_paper(self):
        # GROUP paper, table 2: 6.0M dense and 2.7M with 16 groups. What is counted is not
        # said; here all but tables and softmax, by hand. Totals of ours as
        # docs/benchmarks/parameters.md prints them.
        d = 256
        lstm = lambda m, n, k=1: 4 * (n * (m + n) // k + n)
        page = (ROOT / "docs/benchmarks/parameters.md").read_text(encoding="utf-8")
        ours = {1: 6_169_344, 2: 4_334_336, 4: 3_416_832, 8: 2_958_080, 16: 2_728_704}
        self.assertIn("| `nmt-info` | " + " | ".join(f"{total:,}" for total in ours.values())
                      + " |", page)
        papers = {1: 6.0, 16: 2.7}
        for k, total in ours.items():
            with self.subTest(groups=k):
                parts = info("iwslt14-de-en-group", None, "--groups", k)["parameters"]["components"]
                encoder = 2 * lstm(d, d, k) + lstm(2 * d, 2 * d, k)
                self.assertEqual(parts["encoder"]["parameters"], encoder)
                # a conditional layer of two dense units, the attention, and an upper layer
                # over the first
                attention = d * 2 * d + 2 * d
                first = lstm(d, d) + lstm(2 * d, d)
                self.assertEqual(parts["decoder"]["parameters"], first + attention + lstm(d, d, k))
                counted = sum(part["parameters"] for name, part in parts.items()
                                                           if name not in ("embeddings", "softmax"))
                self.assertEqual(counted, total)
                if k in papers:
                    self.assertAlmostEqual(counted / 1e6, papers[k], delta=0.2)

    def test_totals_of_the_wmt_recipe_of_the_group_paper(self):
        # Every part by hand from the equations (lstm and GROUP, eq. 6), 4+4 layers. The parameter
        # column of the paper's table 3 is not available.
        e, n, wide, symbols = 512, 1024, 2048, 30_000
        lstm = lambda m, n, k=1: 4 * (n * (m + n) // k + n)
        page = (ROOT / "docs/reference/units.md").read_text(encoding="utf-8")
        printed = []
        for k in (1, 2, 4, 8, 16):
            with self.subTest(groups=k):
                told = info("wmt14-en-de-group", None, "--groups", k)["parameters"]
                by_hand = {
                    "embeddings": 2 * symbols * e,
                    # two directions over x, then three layers as wide as [forward;
                    # backward] (footnote 3)
                                  "encoder": 2 * lstm(e, n, k) + 3 * lstm(wide, wide, k),
                    "attention keys": wide * wide,
                    # tanh(W final), for h and c of four decoder layers
                                      "initial states": 4 * 2 * (wide * n + n),
                    # a dense conditional layer (footnote 2) of two units, over y' and over c; query
                    # and score vector; three layers over h
                                                        "decoder": lstm(e, n) + lstm(wide, n)
                                                                   + n * wide + wide
                                                                   + 3 * lstm(n, n, k),
                    # tanh(W [h; c; y'])
                                                                   "readout": (n + wide + e) * e
                                                                   + e,
                    "softmax": e * symbols + symbols,
                }
                self.assertEqual({name: part["parameters"]
                                  for name, part in told["components"].items()}, by_hand)
                self.assertEqual(told["total"], sum(by_hand.values()))
                printed.append(told["total"] - by_hand["embeddings"] - by_hand["softmax"])
        self.assertIn("| `nmt-info` | " + " | ".join(f"{total:,}" for total in printed)
                      + " |", page)

    # LRN paper: parameters by unit, in thousands of table 6 (named entities) and table 2
    # (classification of texts), in millions of table 5 (language models); the figures also stand in
    # github.com/bzhangGo/lrn (ner, doc, lm).
    LRN_TASKS = {"lstm": (245, 227, 22), "gru": (192, 176, 17), "atr": (87, 74, 9),
                 "sru": (161, 194, 13), "lrn": (129, 151, 11)}

    def page(self):
        return (ROOT / "docs/benchmarks/parameters.md").read_text(encoding="utf-8")

    def parts(self, *args):
        return {name: part["parameters"] for name, part in json.loads(
            run("--json", *args).stdout)["parameters"]["components"].items()}

    def test_taggers_and_classifiers_of_the_lrn_paper(self):
        """The layers of the units; what is left of the paper's figures is one number for
        all units."""
        tagger = ["--task", "tagging", "--dim-emb", 100, "--dim-rnn", 100, "--enc-depth", 1,
                  "--dim-char-emb", 25, "--dim-char-rnn", 25, "--crf",
                  "--no-layer-normalization", "--dim-vocabs", 1000, "--dim-labels", 9]
        # Words of 300 and 32 values, here one embedding.
        classifier = ["--task", "classification", "--dim-emb", 332, "--dim-rnn", 64,
                      "--enc-depth", 1, "--no-layer-normalization", "--dim-vocabs", 1000,
                      "--dim-labels", 5]
        lowest, highest, counted = [0, 0], [1e9, 1e9], [[], []]
        for unit, (*printed, _) in self.LRN_TASKS.items():
            of_tagger, of_classifier = (self.parts(*args, "--unit", unit)
                                        for args in (tagger, classifier))
            layers = of_tagger["characters"] + of_tagger["encoder"], of_classifier["encoder"]
            for i in range(2):  # figures are rounded to 1000
                counted[i].append(f"{layers[i]:,}")
                lowest[i] = max(lowest[i], (printed[i] - 0.5) * 1e3 - layers[i])
                highest[i] = min(highest[i], (printed[i] + 0.5) * 1e3 - layers[i])
        for i, rest in enumerate([(34_000, 34_250), (23_236, 23_628)]):
            self.assertEqual((lowest[i], highest[i]), rest)
            self.assertLess(*rest)
            self.assertIn(" | ".join([*counted[i], f"{rest[0]:,} to {rest[1]:,}"]), self.page())

    def test_language_models_of_the_lrn_paper(self):
        """Layers of 960, 960 and 620 over embeddings of 280, each counted alone, and the mixture of
        15 softmaxes of the paper by hand."""
        fixed = ["--task", "language-model", "--no-layer-normalization", "--dim-vocabs", 1000,
                 "--lm-output", "none", "--tied-embeddings=false"]
        table, last, experts, emb = 10_000, 620, 15, 280
        softmaxes = table * emb + table + last * experts + last * experts * emb + experts * emb
        counted = []
        for unit, (*_, printed) in self.LRN_TASKS.items():
            with self.subTest(unit=unit):
                layers = 0
                for width_in, width in ((emb, 960), (960, 960), (960, last)):
                    one, two = (self.parts(*fixed, "--dim-emb", width, "--dim-rnn", width,
                                           "--dec-depth", depth, "--unit", unit)["decoder"]
                                for depth in (1, 2))
                    # of a layer with equal widths: what reads the input has one row for
                    # each of its values
                    rows = json.loads(run("--json", *fixed, "--dim-emb", width, "--dim-rnn", width,
                                          "--dec-depth", 1,
                                          "--unit", unit).stdout)["unit"]["input-matrices"] * width
                    self.assertEqual(two, 2 * one)
                    layers += one + rows * (width_in - width)
                counted.append(f"{layers / 1e6:.2f}M")
                self.assertAlmostEqual((layers + softmaxes) / 1e6, printed, delta=0.52)
        self.assertIn(" | ".join([*counted, f"{softmaxes / 1e6:.2f}M"]), self.page())

    def test_tagger_by_hand(self):
        """Every part of every network from the equations (ELSTM, table 1 and eq. 26-31)."""
        e, n, words, tags, chars, c = 12, 16, 50, 7, 6, 4
        lstm = lambda m, n: 4 * n * (m + n + 1)
        fixed = ["--task", "tagging", "--dim-emb", e, "--dim-rnn", n, "--unit", "lstm",
                 "--no-layer-normalization", "--dim-vocabs", words, "--dim-labels", tags]
        crf = (tags + 2) * tags
        for network, characters, more, encoder, output in [
                ("basic", True, ["--enc-depth", 1], lstm(e + 2 * c, n), n * tags + tags),
                ("bidirectional", True, ["--enc-depth", 2, "--crf"],
                 2 * lstm(e + 2 * c, n) + 2 * lstm(2 * n, n), 2 * n * tags + tags + crf),
                ("dependent", True, ["--enc-depth", 1], 2 * lstm(e + 2 * c, n) + 2 * lstm(2 * n, n),
                 2 * (n * tags + tags) + 2 * tags * tags),
                ("bidirectional", False, ["--enc-depth", 1, "--dim-char-rnn", 0], 2 * lstm(e, n),
                 2 * n * tags + tags),
            ]:
            with self.subTest(network=network, more=more):
                expected = {"embeddings": words * e + (258 * chars if characters else 0),
                            "encoder": encoder, "output": output}
                if characters:
                    expected["characters"] = 2 * lstm(chars, c)
                over = ["--dim-char-emb", chars, "--dim-char-rnn", c] if characters else []
                self.assertEqual(self.parts(*fixed, *over, "--tagging-network", network, *more),
                                 expected)

    def test_classifier_by_hand(self):
        e, n, a, symbols, labels = 12, 16, 10, 50, 3
        told = json.loads(run("--json", "--task", "classification", "--dim-emb", e, "--dim-rnn", n,
                              "--dim-attention", a, "--unit", "gru", "--enc-depth", 2,
                              "--no-layer-normalization", "--dim-vocabs", symbols,
                              "--dim-labels", labels).stdout)
        gru = lambda m: 3 * n * (m + n + 1)
        parts = {name: part["parameters"]
                 for name, part in told["parameters"]["components"].items()}
        self.assertEqual(parts, {"embeddings": symbols * e, "encoder": 2 * gru(e) + 2 * gru(2 * n),
                                 "pooling": 2 * n * a + a + a, "output": 2 * n * labels + labels})
        self.assertEqual(told["parameters"]["total"], sum(parts.values()))
        self.assertEqual((told["task"], told["vocabulary"], told["labels"], told["unit"]["name"]),
                         ("classification", symbols, labels, "gru"))
        self.assertEqual(told["products"], {"token": 2 * 3 * n * (e + n + 2 * n + n) + 2 * n * a,
                                            "text": 2 * n * labels})

    def test_projections_of_attention(self):
        plain, projected = (info("wmt14-en-de-lrn", None, *more)
                            for more in ([], ["--attention-projections"]))
        d = 1024
        self.assertEqual(projected["parameters"]["total"] - plain["parameters"]["total"], 2 * d * d)
        self.assertEqual(projected["products"]["source-token"] - plain["products"]["source-token"],
                         d * d)
        self.assertEqual(projected["products"]["target-token"] - plain["products"]["target-token"],
                         d * d)
        self.assertEqual(projected["products"]["attention"], plain["products"]["attention"])

    def test_weights_of_the_gnmt(self):
        parts = info("gnmt")["parameters"]["components"]
        d = 1024 * 1024
        # Encoder, in units of d: 8 a direction, 12 over [forward; backward], 8 + 8. Decoder: 8,
        # three times 12 over [x; c], the query.
        self.assertEqual(parts["encoder"]["weights"], 44 * d)
        self.assertEqual(parts["decoder"]["weights"], 45 * d)
        self.assertAlmostEqual(parts["encoder"]["weights"] / 1e6, 46.1, delta=0.05)
        self.assertAlmostEqual(parts["decoder"]["weights"] / 1e6, 47.2, delta=0.05)
        self.assertEqual(parts["attention keys"]["weights"], d)
        self.assertEqual(parts["initial states"]["parameters"], 0)
        self.assertEqual(parts["embeddings"]["parameters"], 32_000 * 1024)
        self.assertEqual(parts["softmax"]["parameters"], 32_000 * 1024 + 32_000)

    # The weight matrices of a unit over input and state (docs/reference/units.md; ATR
    # paper, table 1).
    MATRICES = {"rnn": (1, 1), "srn": (1, 1), "lstm": (4, 4), "gru": (3, 3), "atr": (1, 1),
                "sru": (4, 0), "lrn": (3, 0), "olrn": (4, 0), "glrn": (2, 0), "elrn": (1, 0)}

    def test_matrices_of_the_units(self):
        for unit, (w, u) in self.MATRICES.items():
            with self.subTest(unit=unit):
                told = info("wmt14-en-de-lrn", unit)
                self.assertEqual(told["units"]["encoder"]["name"], unit)
                self.assertEqual((told["units"]["encoder"]["input-matrices"],
                                  told["units"]["encoder"]["state-matrices"]), (w, u))
                # a unit's layer alone: the difference that one more encoder layer makes, less its
                # map of N*N and that one's norm
                one, two = (info("wmt14-en-de-lrn", unit,
                                 "--enc-depth", n)["parameters"]["components"]["encoder"]["weights"]
                            for n in (3, 4))
                self.assertEqual(two - one, (w + u + 1) * 1024 * 1024)

    # ELSTM paper, table 1: gates, and numbers per position and channel, of a layer: gates N(M+N+1),
    # and N(T+1) for ELSTM-I and II.
    ELSTM = {"lstm": (4, 0), "gru": (3, 0), "elstm1": (4, 1), "elstm2": (3, 1)}

    def test_formulas_of_the_elstm_paper(self):
        # One more forward layer of a seq2seq, where M = N.
        n, positions = 24, 7
        fixed = ["--type", "seq2seq", "--dim-emb", n, "--dim-rnn", n, "--dec-depth", 1,
                 "--dim-vocabs", 100, "--no-layer-normalization", "--json"]
        for unit, (gates, scaled) in self.ELSTM.items():
            with self.subTest(unit=unit):
                more = ["--positions", positions] if scaled else []
                one, two = (json.loads(run(*fixed, *more, "--unit", unit,
                                           "--enc-depth", depth).stdout)["parameters"]["total"]
                            for depth in (2, 3))
                self.assertEqual(two - one, gates * n * (n + n + 1) + scaled * n * (positions + 1))

    def test_tagging_recipe_of_the_elstm_paper(self):
        """configs/tagging/ud-ewt.yaml: sentences of at most 100 words, so T = 100; the paper's
        units in its three networks."""
        n, t, words, tags = 512, 100, 10_000, 17
        recipe = ["--config", CONFIGS / "tagging/ud-ewt.yaml", "--dim-labels", tags]
        sizes = [*recipe, "--dim-vocabs", words]
        self.assertEqual(json.loads(run("--json", *sizes).stdout)["unit"]["name"], "elstm1")
        # nmt-train of the training set counts as many.
        text = (CONFIGS / "tagging/ud-ewt.yaml").read_text(encoding="utf-8")
        self.assertIn("9,860 words and 17 tags, so this model has 15,767,140 weights", text)
        self.assertEqual(sum(self.parts(*recipe, "--dim-vocabs", 9_860).values()), 15_767_140)
        for unit, (gates, scaled) in self.ELSTM.items():
            layer = lambda m: gates * n * (m + n + 1) + scaled * n * (t + 1)
            for network, encoder, output in [("basic", layer(n), n * tags + tags),
                                             ("bidirectional", 2 * layer(n), 2 * n * tags + tags),
                                             ("dependent", 2 * layer(n) + 2 * layer(2 * n),
                                              2 * (n * tags + tags) + 2 * tags * tags)]:
                with self.subTest(unit=unit, network=network):
                    self.assertEqual(
                        self.parts(*sizes, "--unit", unit, "--tagging-network", network),
                        {"embeddings": words * n, "encoder": encoder, "output": output})

    def test_groups(self):
        # GROUP paper, eq. 6: (N^2 + NM) / K weights for each gate.
        n = 24
        fixed = ["--type", "seq2seq", "--dim-emb", n, "--dim-rnn", n, "--dec-depth", 1,
                 "--dim-vocabs", 100, "--unit", "lstm", "--json"]
        for k in (1, 2, 4):
            one, two = (json.loads(run(*fixed, "--groups", k, "--enc-depth", depth).stdout)[
                "parameters"]["components"]["encoder"]["weights"] for depth in (2, 3))
            self.assertEqual(two - one, 4 * (n * n + n * n) // k)

    def test_products_by_hand(self):
        # deep lrn, one layer each side, not context-aware: by hand from docs/reference/models.md.
        e, h, v = 6, 10, 50
        told = json.loads(run("--type", "deep", "--unit", "lrn", "--dim-emb", e, "--dim-rnn", h,
                              "--enc-depth", 1, "--dec-depth", 1, "--dim-vocabs", v,
                              "--dim-attention", 8, "--json").stdout)["products"]
        self.assertEqual(told["source-token"], 2 * 3 * e * h + 2 * h * e + e * 8)
        self.assertEqual(told["target-token"],
                         3 * e * h + h * 8 + 3 * e * h + h * e + 2 * e * e + v * e)
        self.assertEqual(told["sentence"], 2 * h * h)
        self.assertEqual(told["attention"], e + 8)

    def test_memory_of_the_weights(self):
        told = info("wmt14-en-de-lrn")
        weights = 4 * told["parameters"]["total"]
        training = told["memory"]["training"]
        self.assertEqual((training["weights"], training["gradients"], training["optimizer"],
                          training["average"]), (weights, weights, 2 * weights, 0))
        self.assertGreater(training["activations"], 0)
        for rule, states in [("adam", 2), ("adadelta", 2), ("adagrad", 1), ("sgd", 0)]:
            training = info("iwslt14-de-en-group", None, "--optimizer", rule)["memory"]["training"]
            self.assertEqual(training["optimizer"], states * training["weights"])
        self.assertEqual(info("wmt14-en-de-lrn", None,
                              "--exponential-smoothing")["memory"]["training"]["average"], weights)

    def test_the_unit_of_a_small_text(self):
        """As nmt-train chooses it; a unit that is given, or a type with its own choice,
        needs no text."""
        sizes = ["--dim-emb", "16", "--dim-rnn", "16", "--enc-depth", "1", "--dec-depth", "1",
                 "--dim-vocabs", "150"]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py",
                            "--pairs", "50", "--valid", "2", "--test", "2", folder], check=True)
            text = ["--train-sets", f"{folder}/train.en", f"{folder}/train.de"]
            self.assertIn("unit of the decoder gru", run(*sizes, *text).stdout)
            # The text decides of the moving average and the batch, whether or not the sizes
            # are given.
            memory = json.loads(run(*sizes, *text, "--unit", "gru",
                                    "--json").stdout)["memory"]["training"]
            self.assertEqual(memory["average"], memory["weights"])
            missing = ["--train-sets", f"{folder}/none.en", f"{folder}/none.de"]
            for given in (["--unit", "lrn"], ["--type", "block"]):
                self.assertIn("unit of the decoder lrn", run(*sizes, *missing, *given).stdout)

    def test_a_model_directory(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="nmt-info-test-"))
        try:
            subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py",
                            "--pairs", "200", "--valid", "20", "--test", "10", "--seed", "1",
                            folder], check=True)
            small = ["--config", CONFIGS / "toy.yaml", "--dim-emb", "16", "--dim-rnn", "16",
                     "--dim-vocabs", "150"]
            run("--quiet", *small, "--train-sets", folder / "train.en", folder / "train.de",
                "--valid-sets", folder / "valid.en", folder / "valid.de",
                "--model", folder / "model", "--after", "2u", tool="nmt-train")
            from_directory, from_settings = (json.loads(run(folder / "model", "--json").stdout),
                                             json.loads(run(*small, "--json").stdout))
            self.assertEqual(from_directory["parameters"], from_settings["parameters"])
            self.assertEqual(from_directory["parameters"]["total"], self.stored(folder / "model"))
            self.assertIn("not both", run(folder / "model", "--unit", "gru", status=2).stderr)
            odd = os.fsdecode(os.fsencode(folder) + b"/m\xff")
            os.symlink("model", odd)
            self.assertEqual(json.loads(run(odd, "--json").stdout)["parameters"],
                             from_directory["parameters"])
            self.check_memory_of_the_training(folder, small)
        finally:
            shutil.rmtree(folder)

    def check_memory_of_the_training(self, folder, small):
        """Optimizer, average and batch are those that the model was trained with, unless
        they are given."""
        run("--quiet", *small, "--train-sets", folder / "train.en", folder / "train.de",
            "--valid-sets", folder / "valid.en", folder / "valid.de",
            "--model", folder / "other", "--after", "2u", "--optimizer", "sgd",
            "--exponential-smoothing", "0.01", "--mini-batch-words", "250", tool="nmt-train")
        told = json.loads(run(folder / "other", "--json").stdout)["memory"]["training"]
        self.assertEqual((told["optimizer"], told["average"], told["batch"]["sentences"]),
                         (0, told["weights"], 10))
        told = json.loads(run(folder / "other", "--json", "--optimizer", "adagrad",
                              "--mini-batch-words", "500").stdout)["memory"]["training"]
        self.assertEqual((told["optimizer"], told["average"], told["batch"]["sentences"]),
                         (told["weights"], told["weights"], 20))
        # A published model has no state of its training.
        for state in folder.glob("other/checkpoints/*/state.*"):
            state.unlink()
        told = json.loads(run(folder / "other", "--json").stdout)["memory"]["training"]
        self.assertEqual((told["optimizer"], told["average"]), (2 * told["weights"], 0))

    def test_directories_of_taggers_and_classifiers(self):
        """What the directory says is what the same settings say, and the number of weights
        in the file."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            lines = [f"{a} {b} {c}" for a in ("red", "old", "new") for b in ("house", "dog")
                     for c in ("runs", "sleeps")]
            columns, labeled = folder / "columns", folder / "labeled"
            columns.write_text("\n\n".join("\n".join(f"{word} {word[0]}" for word in line.split())
                                           for line in lines) + "\n", encoding="utf-8")
            labeled.write_text("".join(f"{line[0]}\t{line}\n" for line in lines), encoding="utf-8")
            short = ["--after", "1u", "--valid-lines", "2", "--threads", "1", "--quiet"]
            small = ["--dim-emb", 8, "--dim-rnn", 8, "--enc-depth", 1, "--unit", "sru"]
            for task, text, symbols, more in [("tagging", columns, None,
                                               ["--tagging-network", "dependent"]),
                                              ("classification", labeled, 30, [])]:
                with self.subTest(task=task):
                    model = folder / task
                    sizes = ["--dim-vocabs", symbols] if symbols else []
                    run("--task", task, text, "--model", model, *small, *more, *sizes, *short,
                        tool="nmt-train")
                    told = json.loads(run(model, "--json").stdout)
                    same = json.loads(run("--json", "--task", task, *small, *more,
                                          "--dim-vocabs", told["vocabulary"],
                                          "--dim-labels", told["labels"]).stdout)
                    self.assertEqual({**told, "origin": ""}, {**same, "origin": ""})
                    stored = self.stored(model)
                    self.assertEqual(told["parameters"]["total"], stored)
                    self.assertIn(f"{stored:,}", run(model).stdout)
                    self.assertIn("not both", run(model, "--dim-labels", 3, status=2).stderr)

    def stored(self, model):
        with open(model / "latest" / "model.safetensors", "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        stored = 0
        for name, tensor in header.items():
            n = 1
            for size in tensor.get("shape", [0]):
                n *= size
            stored += n if name != "__metadata__" else 0
        return stored

    def test_a_dump_is_read_without_a_warning(self):
        sizes = ["--dim-emb", "32", "--dim-rnn", "32", "--dim-vocabs", "70"]
        for more in (["--task", "tagging", "--unit", "lstm", "--enc-depth", "1",
                      "--dim-labels", "7"],
                     ["--task", "language-model", "--unit", "lstm", "--dec-depth", "1"],
                     ["--type", "block", "--unit", "ssru", "--encoder-mixer", "attention",
                      "--enc-depth", "1", "--dec-depth", "1"]):
            with self.subTest(more=more), tempfile.TemporaryDirectory() as folder:
                dump = pathlib.Path(folder) / "dump.yaml"
                dump.write_text(run(*sizes, *more, "--dump-config").stdout, encoding="utf-8")
                again = run("-c", dump)
                self.assertNotIn("without effect", again.stderr)
                self.assertEqual(again.stdout, run(*sizes, *more).stdout)

    def test_text_has_the_same_total(self):
        told = info("wmt14-en-de-atr")["parameters"]["total"]
        self.assertIn(f"{told:,}", run("--config", CONFIGS / "wmt14-en-de-atr.yaml").stdout)

    def test_bad_input(self):
        for args, word in [
                ([], "dim-emb"), (["--architectures", "nowhere"], "model (architectures is on)"),
                (["--architectures", "--dim-emb", "8"], "dim-emb (architectures is on)"),
                (["nowhere"], "nowhere"),
                (["--config", CONFIGS / "gnmt.yaml", "--dim-emb", "512"], "dim-rnn"),
                (["--config", CONFIGS / "gnmt.yaml", "--context-aware"], "context-aware"),
                (["--config", CONFIGS / "nosuch.yaml"], "nosuch"),
                (["--config", CONFIGS / "gnmt.yaml", "--dim-labels", "3"], "dim-labels"),
                (["--task", "tagging", "--dim-emb", "8", "--dim-rnn", "8", "--enc-depth", "1",
                  "--dim-vocabs", "9"], "dim-labels"),
                (["--config", CONFIGS / "wmt14-en-de-lrn.yaml", "--attention", "none"], "seq2seq")]:
            with self.subTest(args=[str(a) for a in args]):
                done = run(*args, status=2)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
