#!/usr/bin/env python3
"""Every recipe in configs/ loads as it is through nmt-info, alone and with every unit, and
takes ten updates on a tiny corpus with its widths set small. Usage: test_recipes.py BIN_DIR
[test names]"""
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "configs").glob("*.yaml"))
PAPERS = {"wmt14-en-de-lrn", "wmt14-en-de-atr", "wmt14-en-fr-atr", "iwslt14-de-en-group",
          "wmt14-en-de-group", "gnmt", "multi30k",
          "wmt14-en-de-deep-rnnsearch", "wmt14-en-de-gnmt-atr", "elstm"}
# Recipes of papers, whose gates have no start of their own.
GATES_OF_PAPERS = [*(ROOT / "configs" / f"{name}.yaml" for name in sorted(PAPERS - {"multi30k"})),
                   ROOT / "configs/parsing/ud-ewt.yaml", ROOT / "configs/tagging/ud-ewt.yaml",
                   ROOT / "configs/summarization/gigaword-group.yaml"]
SMALL = ["--dim-emb", "16", "--dim-rnn", "16", "--dim-enc-upper", "0", "--dim-vocabs", "150",
         "--mini-batch-words", "200", "--cpu-threads", "1", "--after", "10u", "--disp-freq", "1u",
         "--valid-freq", "10u", "--save-freq", "10u", "--valid-max-sentences", "4",
         "--beam-size", "2", "--early-stopping", "0", "--quiet"]


class RecipesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="nmt-recipes-test-"))
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "200",
                        "--valid", "20", "--test", "10", "--seed", "1", cls.dir], check=True)

        lines = (cls.dir / "train.en").read_text(encoding="utf-8").splitlines()
        (cls.dir / "train.columns").write_text(
            "\n\n".join("\n".join(f"{word} {word[0]}" for word in line.split()) for line in lines)
            + "\n", encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir, ignore_errors=True)

    def run_tool(self, tool, *args):
        done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0,
                         f"{tool} {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_all_are_there(self):
        self.assertLessEqual(PAPERS, {recipe.stem for recipe in RECIPES})

    def test_recipes_of_papers_start_gates_as_the_papers(self):
        for recipe in GATES_OF_PAPERS:
            with self.subTest(recipe=recipe.stem):
                self.assertRegex(recipe.read_text(encoding="utf-8"), r"(?m)^gate-init: none\b")

    def test_pages_are_listed(self):
        readme, index = ((ROOT / page).read_text(encoding="utf-8")
                         for page in ("README.md", "docs/README.md"))
        programs = {source.stem for source in (ROOT / "tools").glob("nmt-*.cpp")}
        self.assertEqual(programs, set(re.findall(r"(?m)^\| `(nmt-[a-z]+)` \|", readme)))
        pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("*/*.md")}
        self.assertEqual(pages, set(re.findall(r"\]\(([a-z]+/[a-z-]+\.md)\)", index)))

    def test_recipes_set_nothing_without_effect(self):
        for config in sorted((ROOT / "configs").glob("**/*.yaml")):
            with self.subTest(config=config.name):
                task = re.search(r"(?m)^task: (\S+)|\Z", config.read_text(encoding="utf-8"))[1]
                texts = ([self.dir / "train.columns"] if task == "tagging"
                         else [self.dir / "train.en",
                               *([] if task == "language-model" else [self.dir / "train.de"])])
                done = subprocess.run([BIN / "nmt-train", *texts, "-c", config,
                                       "--cpu-threads", "1", "--dump-config"],
                                      capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("without effect", done.stderr)

    def test_recipes_load_as_they_are(self):
        units = self.run_tool("nmt-train",
                              "--build-info").split("units: ")[1].split("\n")[0].split()
        for recipe in RECIPES:
            for unit in [None, *units]:
                with self.subTest(recipe=recipe.name, unit=unit):
                    arguments = ["--json", "--config", recipe, *(["--unit", unit] if unit else [])]
                    done = subprocess.run([BIN / "nmt-info", *arguments], capture_output=True,
                                          text=True, timeout=300)
                    # such units refuse some layers
                    if done.returncode == 2 and "matrix state" in done.stderr:
                        self.assertRegex(recipe.read_text(encoding="utf-8"),
                                         "context-aware: true|attention: none|attention-query: "
                                         "recurrent")
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    told = json.loads(done.stdout)
                    self.assertGreater(told["parameters"]["total"],
                                       told["parameters"]["embeddings"])
                    if unit:
                        self.assertEqual(told["units"]["decoder"]["name"], unit)

    def test_tagging_recipe_takes_ten_updates(self):
        model = self.dir / "tagger"
        self.run_tool("nmt-train", "--config", ROOT / "configs/tagging/ud-ewt.yaml",
                      "--dim-emb", 16, "--dim-rnn", 16, "--cpu-threads", 1, "--after", "10u",
                      "--disp-freq", "1u", "--valid-freq", "10u", "--save-freq", "10u", "--quiet",
                      "--train-sets", self.dir / "train.columns", "--model", model)
        lines = [json.loads(line)
                 for line in (model / "train.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertTrue(all(math.isfinite(line["loss"])
                            for line in lines if line["event"] == "display"))
        tags = subprocess.run([BIN / "nmt-tag", model], input=b"a b c\n", capture_output=True,
                              timeout=300, check=True).stdout.split()
        self.assertEqual(len(tags), 3)

    def test_recipes_take_ten_updates(self):
        for recipe in RECIPES:
            with self.subTest(recipe=recipe.name):
                model = self.dir / recipe.stem
                self.run_tool("nmt-train", "--config", recipe, *SMALL,
                              "--train-sets", self.dir / "train.en", self.dir / "train.de",
                              "--valid-sets", self.dir / "valid.en", self.dir / "valid.de",
                              "--model", model)
                lines = [json.loads(line) for line in (model / "train.jsonl").read_text(
                    encoding="utf-8").splitlines()]
                shown = [line for line in lines if line["event"] == "display"]
                self.assertEqual(shown[-1]["updates"], 10)
                self.assertTrue(all(math.isfinite(line["loss"]) for line in shown))
                self.assertTrue((model / "latest" / "model.safetensors").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
