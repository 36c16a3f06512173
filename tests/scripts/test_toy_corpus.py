#!/usr/bin/env python3
"""The toy corpus: words written by hand against those of the generator, and the promises
about its splits."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/data" / "make_toy_corpus.py"
spec = importlib.util.spec_from_file_location("make_toy_corpus", SCRIPT)
toy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toy)

NUMBERS = {0: ("zero", "null"), 1: ("one", "eins"), 16: ("sixteen", "sechzehn"),
           17: ("seventeen", "siebzehn"), 21: ("twenty-one", "einundzwanzig"),
           30: ("thirty", "dreißig"), 67: ("sixty-seven", "siebenundsechzig"),
           100: ("one hundred", "einhundert"), 101: ("one hundred and one", "einhunderteins"),
           999: ("nine hundred and ninety-nine", "neunhundertneunundneunzig"),
           1000: ("one thousand", "eintausend"), 1001: ("one thousand and one", "eintausendeins"),
           21345: ("twenty-one thousand three hundred and forty-five",
                   "einundzwanzigtausenddreihundertfünfundvierzig"),
           700012: ("seven hundred thousand and twelve", "siebenhunderttausendzwölf")}
CLOCKS = {(1, 0): ("one o'clock", "ein Uhr"), (3, 5): ("five past three", "fünf nach drei"),
          (3, 15): ("a quarter past three", "Viertel nach drei"),
          (3, 25): ("twenty-five past three", "fünf vor halb vier"),
          (3, 30): ("half past three", "halb vier"), (12, 30): ("half past twelve", "halb eins"),
          (3, 35): ("twenty-five to four", "fünf nach halb vier"),
          (12, 45): ("a quarter to one", "Viertel vor eins"),
          (3, 55): ("five to four", "fünf vor vier")}
YEARS = {1900: ("nineteen hundred", "neunzehnhundert"),
         1905: ("nineteen oh five", "neunzehnhundertfünf"),
         1984: ("nineteen eighty-four", "neunzehnhundertvierundachtzig"),
         2000: ("two thousand", "zweitausend"),
         2007: ("two thousand and seven", "zweitausendsieben"),
         2024: ("twenty twenty-four", "zweitausendvierundzwanzig")}
ORDINALS = {1: ("first", "erste"), 3: ("third", "dritte"), 7: ("seventh", "siebte"),
            8: ("eighth", "achte"), 12: ("twelfth", "zwölfte"), 16: ("sixteenth", "sechzehnte"),
            20: ("twentieth", "zwanzigste"), 25: ("twenty-fifth", "fünfundzwanzigste")}
PRICES = {(1, 0): ("one euro", "ein Euro"), (2, 1): ("two euros and one cent", "zwei Euro eins"),
          (0, 50): ("fifty cents", "fünfzig Cent"),
          (12, 50): ("twelve euros and fifty cents", "zwölf Euro fünfzig")}
DECLINED = {("the", "m", True, "alt", "Tisch"): "den alten Tisch",
            ("the", "f", True, "müde", "Frau"): "die müde Frau",
            ("a", "m", False, "alt", "Mann"): "ein alter Mann",
            ("a", "n", True, "neu", "Bild"): "ein neues Bild",
            ("a", "m", True, "", "Stuhl"): "einen Stuhl"}


class ToyCorpus(unittest.TestCase):
    def test_words(self):
        for n, words in NUMBERS.items():
            self.assertEqual((toy.en_number(n), toy.de_number(n)), words)
        for time, words in CLOCKS.items():
            self.assertEqual(toy.clock(*time), words)
        for year, words in YEARS.items():
            self.assertEqual((toy.en_year(year), toy.de_year(year)), words)
        for n, words in ORDINALS.items():
            self.assertEqual((toy.en_ordinal(n), toy.de_ordinal(n, "e")), words)
        for amount, words in PRICES.items():
            self.assertEqual(toy.price(*amount), words)
        for group, words in DECLINED.items():
            self.assertEqual(toy.declined(*group), words)

    def test_verb_last_in_subordinate_clauses(self):
        last = {verb[4] + verb[3]
                for verb in toy.VERBS + [toy.EATING]} | {"hat"} | {modal[1] for modal in toy.MODALS}
        maker = toy.Maker(5)
        for _ in range(300):
            english, german = maker.subordinate_clause()
            self.assertIn(german.rstrip(".").split()[-1], last, (english, german))

    def write(self, folder, *arguments):
        subprocess.run([sys.executable, SCRIPT, *arguments, folder], check=True)
        return {path.name: path.read_text(encoding="utf-8")
                for path in pathlib.Path(folder).iterdir()}

    def test_splits(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["--pairs", "2000", "--valid", "50", "--test", "60"]
            files = self.write(folder + "/a", *arguments)
            self.assertEqual(files, self.write(folder + "/b", *arguments))
            self.assertNotEqual(files, self.write(folder + "/c", *arguments, "--seed", "2"))
            self.assertEqual(len(files), 6)
            for language in ("en", "de"):
                lines = []
                for split, size in (("train", 2000), ("valid", 50), ("test", 60)):
                    text = files[f"{split}.{language}"]
                    self.assertTrue(text.endswith(".\n"))
                    self.assertEqual(text.count("\n"), size)
                    lines += text.splitlines()
                self.assertEqual(len(set(lines)), 2110)

    def test_too_much_is_refused(self):
        run = subprocess.run([sys.executable, SCRIPT, "--pairs", "0", "x"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("at least 1", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
