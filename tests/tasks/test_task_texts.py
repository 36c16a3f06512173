#!/usr/bin/env python3
"""scripts/data/linearize_trees.py over trees written by hand, scripts/data/package_texts.py over
small apt lists, and the noise of scripts/bench/quality/noise.py. No network."""
import importlib.util
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/data"))


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


trees, noise = (module(ROOT / "scripts/data/linearize_trees.py"),
                module(ROOT / "scripts/bench/quality/noise.py"))


def conllu(*rows):
    return "".join(f"{i}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
                   for i, (form, head, relation) in enumerate(rows, 1)) + "\n"


READS = [("She", 2, "nsubj"), ("reads", 0, "root"), ("books", 2, "obj"), (".", 2, "punct")]
# "A hearing is scheduled on the issue today": on the issue belongs to hearing, across scheduled.
CROSSING = [("A", 2, "det"), ("hearing", 4, "nsubj:pass"), ("is", 4, "aux"),
            ("scheduled", 0, "root"), ("on", 7, "case"), ("the", 7, "det"),
            ("issue", 2, "nmod"), ("today", 4, "advmod")]


class Trees(unittest.TestCase):
    def test_brackets(self):
        text = " ".join(trees.linearize(READS))
        self.assertEqual(text, "(root (nsubj * ) * (obj * ) (punct * ) )")
        self.assertEqual(trees.parse(text.split()),
                         ([2, 0, 2, 2], ["nsubj", "root", "obj", "punct"], True))

    def test_crossing_arcs_are_lifted(self):
        self.assertEqual(trees.crossing([2, 4, 4, 0, 7, 7, 2, 4]), 7)
        self.assertEqual(trees.projective([2, 4, 4, 0, 7, 7, 2, 4]), [2, 4, 4, 0, 7, 7, 4, 4])
        heads, relations, sound = trees.parse(trees.linearize(CROSSING))
        self.assertEqual((heads, sound), ([2, 4, 4, 0, 7, 7, 4, 4], True))
        self.assertEqual(relations[1], "nsubj:pass")
        self.assertEqual(trees.linearize(CROSSING, subtypes=False)[1], "(nsubj")

    def test_any_projective_tree_returns(self):
        rng = random.Random(1)
        for _ in range(300):
            size = rng.randint(1, 12)

            def heads_of(low, high, head):  # a random projective tree over [low, high)
                if low >= high:
                    return {}
                root = rng.randrange(low, high)
                found = {root: head}
                at = low
                while at < high:  # the dependents divide both sides of the root
                    if at == root:
                        at += 1
                        continue
                    end = rng.randint(at + 1, root if at < root else high)
                    found.update(heads_of(at, end, root))
                    at = end
                return found

            found = heads_of(1, size + 1, 0)
            rows = [("w", found[i], f"r{i % 3}") for i in range(1, size + 1)]
            self.assertEqual(trees.crossing([head for _, head, _ in rows]), 0)
            heads, relations, sound = trees.parse(trees.linearize(rows))
            self.assertTrue(sound)
            self.assertEqual(heads, [head for _, head, _ in rows])
            self.assertEqual(relations, [relation for _, _, relation in rows])

    def test_broken_brackets(self):
        for text in ("", "(root * ) )", "(root *", "(root (nsubj ) * )", "(root * * )", "* )",
                     "word", "(root * ) (root * )"):
            self.assertFalse(trees.parse(text.split())[2], text)

    def test_program(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            script = ROOT / "scripts/data/linearize_trees.py"
            (folder / "t.conllu").write_text("# text\n" + conllu(*READS).replace(
                "3\tbooks", "2-3\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\tbooks") + conllu(*CROSSING),
                                             encoding="utf-8")
            subprocess.run([sys.executable, script, "write", folder / "t.conllu", folder / "w",
                            folder / "p"], check=True)
            self.assertEqual((folder / "w").read_text(encoding="utf-8"),
                             "She reads books .\nA hearing is scheduled on the issue today\n")
            done = subprocess.run([sys.executable, script, "score", folder / "t.conllu",
                                   folder / "p"], check=True, capture_output=True, text=True)
            # One of the twelve words has another head.
            self.assertEqual(done.stdout, "UAS 91.67 | LAS 91.67 | whole trees 50.00 % | "
                                          "well-formed 100.00 % | 12 words, 2 sentences\n")
            (folder / "p").write_text("(root (nsubj * ) * (iobj * ) (punct * ) )\n"
                                      "(root (det * ) *\n", encoding="utf-8")
            done = subprocess.run([sys.executable, script, "score", folder / "t.conllu",
                                   folder / "p"], check=True, capture_output=True, text=True)
            # 4 heads and 3 relations of the first tree, the determiner of the second.
            self.assertEqual(done.stdout, "UAS 41.67 | LAS 33.33 | whole trees 0.00 % | "
                                          "well-formed 50.00 % | 12 words, 2 sentences\n")
            # Subtypes that are dropped count on neither side; the last line needs no line feed.
            (folder / "s.conllu").write_text(conllu(("x", "2", "nsubj:pass"), ("y", "0", "root")),
                                             encoding="utf-8")
            (folder / "q").write_text("(root (nsubj:x * ) * )", encoding="utf-8")
            for options, labeled in ((["--no-subtypes"], "100.00"), ([], "50.00")):
                done = subprocess.run([sys.executable, script, "score", *options,
                                       folder / "s.conllu", folder / "q"], check=True,
                                      capture_output=True, text=True)
                self.assertIn(f"LAS {labeled} |", done.stdout)
            for name, text, said in (("l", conllu(*[(f"w{i}", str(i), "dep") for i in range(1001)]),
                                      "a sentence of more than 1,000 words"),
                                     ("a", "1\tx\n\n", "2 columns, expected the 10"),
                                     ("b", conllu(("x", "_", "root")), "head '_'"),
                                     ("c", conllu(("x", "9", "root")),
                                      "word 1 has the head 9, the sentence has 1 words"),
                                     ("g", conllu(("x", "2", "a"), ("y", "9", "b")),
                                      "word 2 has the head 9, the sentence has 2 words"),
                                     ("d", conllu(("x", "2", "a"), ("y", "1", "b")),
                                      "the heads of word 1 form a circle")):
                (folder / name).write_text(text, encoding="utf-8")
                done = subprocess.run([sys.executable, script, "write", folder / name, folder / "w",
                                       folder / "p"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{folder / name}:1: {said}", done.stderr)
            (folder / "e").write_bytes(conllu(*READS).encode() + b"# \xff\n")
            (folder / "f").write_text("\n")
            for words, said in ((["write", "e", "w", "p"], "e:6: invalid UTF-8"),
                                (["score", "t.conllu", "e"], "e:6: invalid UTF-8"),
                                (["score", "f", "f"], "f: no tree")):
                done = subprocess.run([sys.executable, script, words[0],
                                       *(folder / name for name in words[1:])],
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (1, f"{folder}/{said}\n"))


class Packages(unittest.TestCase):
    def test_lists_become_texts(self):
        packages, descriptions = [], []
        for i in range(600):
            md5, section = (f"{i:032x}",
                            ("utils", "contrib/net", "rare")[0 if i % 2 else 1 if i > 10 else 2])
            packages.append(f"Package: p{i}\nSource: s{i // 2} (1.0)\nSection: {section}\n"
                            f"Description-md5: {md5}\n")
            words = " ".join(f"word{i}" for _ in range(14 if i % 3 == 0 else 16))
            descriptions.append(f"Package: p{i}\nDescription-md5: {md5}\nDescription-en: "
                                f"tool number {i}\n {words}\n .\n Second paragraph.\n")
        packages.append("Package: q\nSection: utils\nDescription-md5: f\n")
        # the synopsis is not new
        descriptions.append("Package: q\nDescription-md5: f\nDescription-en: tool number 7\n "
                            + "other " * 20 + "\n")
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            (folder / "lists").mkdir()
            (folder / "lists/x_Packages").write_text("\n".join(packages), encoding="utf-8")
            (folder / "lists/x_Translation-en").write_text("\n".join(descriptions),
                                                           encoding="utf-8")
            command = [sys.executable, ROOT / "scripts/data/package_texts.py",
                       "--lists", folder / "lists", folder / "out"]
            subprocess.run(command, check=True, capture_output=True)
            splits, longs = {}, []
            for split in ("train", "valid", "test"):
                rows = [line.split("\t") for line in (
                    folder / f"out/sections/{split}.tsv").read_text(encoding="utf-8").splitlines()]
                for section, text in rows:
                    self.assertIn(section, ("utils", "net"))
                    if text.startswith("tool number") and "other" not in text:
                        i = int(text.split()[2].strip("."))
                        self.assertEqual(section, "utils" if i % 2 else "net")
                        self.assertEqual(splits.setdefault(i // 2, split), split,
                                         "a source package in two splits")
                        self.assertTrue(text.startswith(f"tool number {i}. word{i} "))
                long, short = [(folder / f"out/summaries/{split}.{side}").read_text(
                    encoding="utf-8").splitlines() for side in ("long", "short")]
                self.assertEqual(len(long), len(short))
                longs += long
                for x, y in zip(long, short):
                    self.assertEqual(len(x.split()), 16)
                    self.assertEqual(x.split()[0], "word" + y.split()[2])
            self.assertEqual(len(longs), 400)
            self.assertEqual(set(splits.values()), {"train", "valid", "test"})
            (folder / "none").mkdir()
            done = subprocess.run([*command[:3], folder / "none", folder / "out2"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no package descriptions", done.stderr)
            self.assertFalse((folder / "out2").exists())
            done = subprocess.run([*command[:3], folder / "nosuch", folder / "out2"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"package_texts: {folder}/nosuch: No such file or directory\n"))


class Noise(unittest.TestCase):
    def test_sets(self):
        sets = noise.noised(["a big dog runs.", "two men, here!"],
                            ["ein großer Hund läuft.", "zwei Männer"], 1)
        self.assertEqual(sets["upper"], [["A BIG DOG RUNS.", "TWO MEN, HERE!"],
                                         ["EIN GROSSER HUND LÄUFT.", "ZWEI MÄNNER"]])
        self.assertEqual(sets["title"][1][0], "Ein Großer Hund Läuft.")
        self.assertEqual(sets["punctuation"], [["a big dog runs", "two men, here!"],
                                               ["ein großer Hund läuft", "zwei Männer"]])
        self.assertEqual(sets["typos"][1], sets["clean"][1])
        for clean, typo in zip(*(sets[name][0] for name in ("clean", "typo"))):
            self.assertEqual(sum(a != b for a, b in zip(clean.split(), typo.split())), 1)

    def test_every_line_has_a_typo(self):
        lines = ["boot, happy too"] * 300 + ["äöü"] * 100 + ["see"] * 100
        for name in ("typo", "typos"):
            self.assertEqual(sum(a == b
                                 for a, b in zip(lines, noise.noised(lines, lines, 1)[name][0])), 0)

    def test_few_words(self):
        self.assertEqual(sorted(noise.short_inputs(["a dog runs.", "a dog!"], 1)),
                         ["a", "a dog", "dog", "dog runs", "runs"])

    def test_repetitions(self):
        for line, found in (("Hund Hund", True), ("ein Hund, ein Hund!", True),
                            ("der Hund der Mann", False), ("", False), ("Ein ein", True)):
            self.assertEqual(noise.has_repetition(line), found, line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
