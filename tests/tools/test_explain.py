#!/usr/bin/env python3
"""Tests of nmt-explain: its numbers against plain arithmetic over the gates that it saved, the page
against the JSON, odd and bad input. Usage: test_explain.py BIN_DIR [test names]"""
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

try:
    import numpy
except ImportError:
    numpy = None

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["--dim-emb", "12", "--dim-rnn", "12", "--dim-vocabs", "200", "--mini-batch-words", "300",
         "--cpu-threads", "2", "--after", "6u", "--valid-freq", "6u", "--save-freq", "6u",
         "--valid-max-sentences", "5", "--early-stopping", "0", "--exponential-smoothing", "0"]
# Models that more than one test looks into.
LRN = ["--unit", "lrn", "--heads", "2", "--enc-depth", "2", "--dec-depth", "2"]
ATR = ["--unit", "atr", "--context-aware", "--enc-depth", "2", "--dec-depth", "2"]
RNN = ["--unit", "rnn", "--enc-depth", "1", "--dec-depth", "1"]
LINES = ["three cats.", "", "</script><script>x()</script> \u2028 & <b>",
         "the red house sees two dogs today."]


def run(*args, status=0, tool="nmt-explain", stdin=None):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, timeout=300,
                          input=stdin)
    if done.returncode != status:
        raise AssertionError(f"{tool} {args}: status {done.returncode}, not {status}\n"
                             f"{done.stdout[-2000:]}{done.stderr}")
    return done


def elementwise():
    """The units with vectors as states and no product with them, by nmt-info."""
    names = run("--build-info",
                tool="nmt-train").stdout.decode().split("units: ")[1].split("\n")[0].split()
    sizes = ["--dim-emb", 8, "--dim-rnn", 8, "--enc-depth", 1, "--dec-depth", 1, "--dim-vocabs", 50]
    told = {name: json.loads(run("--json", *sizes, "--unit", name,
                                 tool="nmt-info").stdout)["units"]["decoder"] for name in names}
    return {name for name, unit in told.items() if unit["state-matrices"] == 0
                           and not unit["matrix-state"]}


ELEMENTWISE = elementwise()


def read_safetensors(path):
    blob = path.read_bytes()
    (size,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        rows, columns = entry["shape"]
        values = struct.unpack(f"<{rows * columns}f", blob[8 + size + begin:8 + size + end])
        tensors[name] = [list(values[r * columns:(r + 1) * columns]) for r in range(rows)]
    return tensors


def page_data(page):
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert len(found) == 1, len(found)
    return json.loads(found[0])


def mean(values):
    return math.fsum(values) / len(values)


def pearson(xs, ys):
    mx, my = mean(xs), mean(ys)
    xx, yy = math.fsum((x - mx) ** 2 for x in xs), math.fsum((y - my) ** 2 for y in ys)
    return math.fsum((x - mx) * (y - my) for x, y in zip(xs, ys)) / math.sqrt(xx * yy)


def times(a, b):
    return [[x * y for x, y in zip(r, s)] for r, s in zip(a, b)]


class ExplainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="nmt-explain-test-"))
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "200",
                        "--valid", "20", "--test", "10", "--seed", "1", cls.root], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def model(self, name, *options):
        folder = self.root / name
        if not folder.exists():
            run(self.root / "train.en", self.root / "train.de", "--model", folder, *SMALL, *options,
                tool="nmt-train")
        return folder

    def explain(self, name, *options):
        files = self.root / f"{name}.json", self.root / f"{name}.gates"
        page = run("-m", self.model(name, *options), "--json", files[0], "--gates", files[1],
                   stdin="\n".join(LINES).encode()).stdout.decode()
        return page, json.loads(files[0].read_text(encoding="utf-8")), read_safetensors(files[1])

    def close(self, a, b, what):
        self.assertLessEqual(abs(a - b), 1e-5 * abs(b) + 1e-7, f"{what}: {a} {b}")

    def check_numbers(self, data, gates):
        """Everything of the units again, from the saved gates: weights of LRN's equations 5 to 7,
        means, correlations, strongest."""
        expected = {f"{s['line']}.{u['name']}.{g}" for s in data["sentences"] if s["units"]
                    for u in data["units"] if u["gates"]
                    for g in ("input", "forget", *(["slope"] if u["unit"] in ELEMENTWISE else []))}
        self.assertEqual(set(gates), expected)
        for which, unit in enumerate(data["units"]):
            every = [], []
            for sentence in data["sentences"]:
                if not sentence["units"]:
                    continue
                numbers = sentence["units"][which]
                if not unit["gates"]:
                    self.assertIsNone(numbers)
                    continue
                i, f = (gates[f"{sentence['line']}.{unit['name']}.{gate}"]
                        for gate in ("input", "forget"))
                pieces = sentence["source_pieces" if unit["reads"] == "source" else "target_pieces"]
                n = len(i)
                self.assertEqual([n, len(i[0])], [len(pieces), unit["gate_values"]])
                self.assertEqual(unit["gate_values"], unit["width"])
                for name, gate in (("input", i), ("forget", f)):
                    self.assertTrue(all(0 < x < 1 for row in gate for x in row))
                    for a, row in zip(numbers[name], gate, strict=True):
                        self.close(a, mean(row), name)
                flat_i, flat_f = sum(i, []), sum(f, [])
                every[0].extend(flat_i)
                every[1].extend(flat_f)
                self.close(numbers["pearson_values"], pearson(flat_i, flat_f),
                           "correlation of all gates")
                if n > 2:
                    self.assertAlmostEqual(numbers["pearson_means"],
                                           pearson([mean(r) for r in i], [mean(r) for r in f]),
                                           delta=2e-4)
                enter, carry = i, f
                if unit["step"] != "alone":
                    partner = gates[
                        f"{sentence['line']}.{data['units'][unit['partner']]['name']}.forget"]
                    carry = times(f, partner)
                    if unit["step"] == "lower":
                        enter = times(i, partner)
                order = (list(range(n)) if unit["direction"] == "forward"
                         else list(range(n - 1, -1, -1)))
                for k in range(n):
                    weight, curve = enter[k], []
                    for t in order[order.index(k):]:
                        if t != k:
                            weight = [w * c for w, c in zip(weight, carry[t])]
                        curve.append(mean(weight))
                    for a, b in zip(numbers["memory"][k], curve, strict=True):
                        self.close(a, b, "memory")
                self.check_gradient(data, which, sentence, gates, order)
                self.assertEqual([s["at"] for s in numbers["strongest"]], order[1:])
                for s in numbers["strongest"]:
                    earlier = {k: numbers["memory"][k][order.index(s["at"]) - order.index(k)]
                               for k in order[:order.index(s["at"])]}
                    self.close(s["weight"], max(earlier.values()), "strongest")
                    self.close(s["weight"], earlier[s["from"]], "strongest")
            if unit["gates"]:
                self.close(data["overall"][which]["pearson_values"], pearson(*every),
                           "correlation over all sentences")

    def check_gradient(self, data, which, sentence, gates, order):
        """The norm of products of slopes by distance, again from the saved slopes."""
        unit, numbers, n = data["units"][which], sentence["units"][which], len(order)
        units = [unit] + ([data["units"][unit["partner"]]] if unit["step"] != "alone" else [])
        if not all(u["unit"] in ELEMENTWISE for u in units):
            self.assertIsNone(numbers["gradient"])
            return
        slopes = [gates[f"{sentence['line']}.{u['name']}.slope"] for u in units]
        slope = slopes[0] if len(slopes) == 1 else times(*slopes)
        self.assertEqual(len(numbers["gradient"]), n - 1)
        for distance in range(1, n):
            norms = []
            for k in range(n - distance):
                product = [1.0] * unit["width"]
                for t in order[k + 1:k + distance + 1]:
                    product = [a * b for a, b in zip(product, slope[t])]
                norms.append(math.sqrt(mean([x * x for x in product])))
            self.close(numbers["gradient"][distance - 1], mean(norms), "gradient")

    def test_slope_of_ssru_is_its_forget_gate(self):
        """c = f * c' + (1 - f) * x, and f does not read the state."""
        _, data, gates = self.explain("ssru", "--unit", "ssru", "--enc-depth", "1",
                                      "--dec-depth", "1")
        self.check_numbers(data, gates)
        slopes = {key: values for key, values in gates.items() if key.endswith("slope")}
        self.assertEqual(len(slopes), 3 * 4)
        for key, slope in slopes.items():
            for r, s in zip(slope, gates[key.replace("slope", "forget")]):
                self.assertTrue(all(abs(x - y) < 1e-6 for x, y in zip(r, s)), key)

    def test_weights_of_long_sentences_vanish(self):
        """A product of hundreds of gates passes through the numbers that a double holds in part,
        below 1e-307, and ends at 0."""
        model = self.model("long", "--unit", "atr", "--context-aware", "--enc-depth", "1",
                           "--dec-depth", "1")
        page = run("-m", model, "--max-length", "300", "--sentences", "1", "-b", "1",
                   stdin=b"three cats. " * 100).stdout.decode()
        smallest = [min(row) for unit in page_data(page)["sentences"][0]["units"]
                    for row in unit["memory"]]
        self.assertLess(min(smallest), 1e-307)

    @unittest.skipUnless(numpy, "no numpy; scripts/setup.sh installs it")
    def test_means_over_all_sentences(self):
        """ATR, figure 3: the mean gates by position over all sentences and their correlation, again
        by numpy from the saved gates."""
        for name, options in (("lrn", LRN), ("atr", ATR), ("rnn", RNN)):
            _, data, gates = self.explain(name, *options)
            lines = [s["line"] for s in data["sentences"] if s["units"]]
            self.assertEqual(len(lines), 3)
            for unit, overall in zip(data["units"], data["overall"], strict=True):
                if not unit["gates"]:
                    self.assertIsNone(overall)
                    continue
                curves, flat = [], []
                for gate in ("input", "forget"):
                    every = [numpy.array(gates[f"{line}.{unit['name']}.{gate}"],
                                         dtype=numpy.float64) for line in lines]
                    by_position = numpy.full((len(every), max(len(rows) for rows in every)),
                                             numpy.nan)
                    for sentence, rows in zip(by_position, every):
                        sentence[:len(rows)] = rows.mean(axis=1)
                    curves.append(numpy.nanmean(by_position, axis=0))
                    flat.append(numpy.concatenate([rows.ravel() for rows in every]))
                    numpy.testing.assert_allclose(overall[gate], curves[-1], rtol=1e-5,
                                                  err_msg=unit["name"])
                    self.assertEqual(overall["sentences"],
                                     (~numpy.isnan(by_position)).sum(axis=0).tolist())
                for key, pair in (("pearson_means", curves), ("pearson_values", flat)):
                    numpy.testing.assert_allclose(overall[key], numpy.corrcoef(pair)[0, 1],
                                                  rtol=1e-4, atol=1e-6,
                                                  err_msg=f"{unit['name']} {key}")

    def check_attention(self, data, heads):
        for sentence in data["sentences"]:
            if sentence["units"]:
                self.assertEqual(len(sentence["attention"]), heads)
            for head in sentence["attention"]:
                self.assertEqual(len(head), len(sentence["target_pieces"]))
                for row in head:
                    self.assertEqual(len(row), len(sentence["source_pieces"]))
                    self.assertAlmostEqual(math.fsum(row), 1, delta=1e-4)

    def test_deep_lrn(self):
        page, data, gates = self.explain("lrn", *LRN)
        self.assertEqual([u["name"] for u in data["units"]],
                         ["encoder.layer_0.forward", "encoder.layer_0.backward", "encoder.layer_1",
                          "decoder.layer_0.lower", "decoder.layer_0.higher", "decoder.layer_1"])
        self.assertEqual([u["step"] for u in data["units"]],
                         ["alone", "alone", "alone", "lower", "higher", "alone"])
        self.check_numbers(data, gates)
        self.check_attention(data, 2)
        # The page holds the same numbers, whatever the text is.
        self.assertEqual(page_data(page), data)
        self.assertEqual(page.count("<script"), 2)
        self.assertEqual(re.findall(r'(?:src|href)\s*=\s*"(?!data:)[^"]*"|@import|url\(', page), [])
        self.assertEqual([s["source"] for s in data["sentences"]], LINES)
        self.assertEqual(data["sentences"][1]["units"], [])
        # The translations are those of nmt-translate.
        out = run("-m", self.root / "lrn", tool="nmt-translate",
                  stdin="\n".join(LINES).encode()).stdout.decode()
        self.assertEqual([s["translation"] for s in data["sentences"]], out.split("\n")[:-1])
        for s in data["sentences"]:
            if s["units"] and "<unk>" not in s["source_pieces"]:
                self.assertEqual("".join(s["source_pieces"][:-1]).replace("\u2581", " ").split(),
                                 s["source"].split())
                self.assertEqual(s["source_pieces"][-1], "</s>")

    def test_translations_of_a_converted_model(self):
        self.explain("lrn", *LRN)
        text = "\n".join(LINES).encode()
        pieces = [line.split("\t")[1]
                  for line in run("inspect", self.root / "lrn/vocab.spm", "--pieces",
                                  tool="nmt-vocab").stdout.decode().split("\n") if line]
        some = self.root / "some"
        some.write_text("".join(f"{piece} NULL 0.001\n" for piece in pieces[3::3]),
                        encoding="utf-8")
        plain = run("-m", self.root / "lrn", tool="nmt-translate", stdin=text).stdout
        for name, options in (("int8", []), ("listed", ["--shortlist", some, 1000, 0])):
            run(self.root / "lrn", self.root / name, "--no-check", *options, tool="nmt-convert")
            expected = run("-m", self.root / name, tool="nmt-translate", stdin=text).stdout
            self.assertNotEqual(expected, plain)
            data = self.root / f"{name}.json"
            run("-m", self.root / name, "--json", data,
                "-o", self.root / f"{name}.html", stdin=text)
            self.assertEqual([s["translation"] for s in json.loads(data.read_text())["sentences"]],
                             expected.decode().split("\n")[:-1])

    def test_rnnsearch_gru(self):
        _, data, gates = self.explain("gru", "--unit", "gru", "--type", "rnnsearch",
                                      "--enc-depth", "1", "--dec-depth", "1")
        self.check_numbers(data, gates)
        self.check_attention(data, 1)
        for key, gate in gates.items():  # of a GRU: i = 1 - f
            if key.endswith("input"):
                for r, s in zip(gate, gates[key.replace("input", "forget")]):
                    self.assertTrue(all(abs(x + y - 1) < 1e-6 for x, y in zip(r, s)))

    def test_context_aware_atr(self):
        _, data, gates = self.explain("atr", *ATR)
        names = [u["name"] for u in data["units"]]
        self.assertIn("encoder.layer_0.backward.lower", names)
        self.assertIn("decoder.layer_1.higher", names)
        self.check_numbers(data, gates)
        self.check_attention(data, 1)

    def test_seq2seq_without_attention(self):
        page, data, gates = self.explain("seq2seq", "--unit", "sru", "--type", "seq2seq",
                                         "--attention", "none", "--enc-depth", "1",
                                         "--dec-depth", "1")
        self.check_numbers(data, gates)
        self.assertEqual([s["attention"] for s in data["sentences"]], [[]] * len(LINES))

    def test_gnmt(self):
        _, data, gates = self.explain("gnmt", "--unit", "olrn", "--type", "gnmt",
                                      "--enc-depth", "3", "--dec-depth", "3")
        self.check_numbers(data, gates)
        self.check_attention(data, 1)

    def test_lstm_with_a_plain_first_decoder_layer(self):
        _, data, gates = self.explain("lstm", "--unit", "lstm", "--attention-query", "first-layer",
                                      "--enc-depth", "1", "--dec-depth", "1")
        self.assertEqual([u["step"] for u in data["units"]], ["alone"] * 3)
        self.check_numbers(data, gates)
        self.check_attention(data, 1)

    def test_a_unit_without_gates(self):
        _, data, gates = self.explain("rnn", *RNN)
        self.assertEqual([u["gates"] for u in data["units"]], [False] * 4)
        self.assertEqual(gates, {})
        self.check_numbers(data, gates)
        self.check_attention(data, 1)

    def test_figures(self):
        """scripts/bench/units/draw_gates.py: every figure is an SVG with the numbers of the JSON;
        bad input is one line."""
        self.explain("lrn", *LRN)
        draw = [sys.executable, ROOT / "scripts/bench/units/draw_gates.py"]
        numbers, svg = self.root / "lrn.json", self.root / "figure.svg"
        for figure, files, options, lines in (("surface", [], [], 6),
                                              ("positions", [numbers], ["--at-least", "1"], 2),
                                              ("memory", [numbers], ["--line", "4"], None),
                                              ("strongest", [numbers], [], 0),
                                              ("gradients", [numbers], [], 1)):
            with self.subTest(figure=figure):
                subprocess.run([*draw, figure, svg, *files, *options], check=True)
                root = xml.etree.ElementTree.parse(svg).getroot()
                found = len(root.findall(".//{http://www.w3.org/2000/svg}polyline"))
                if lines is None:
                    sentence = json.loads(numbers.read_text(encoding="utf-8"))["sentences"][3]
                    lines = len(sentence["source_pieces"])
                self.assertEqual(found, lines)
        for arguments, word in ((["memory", svg, self.root / "none.json"], "none.json"),
                                (["memory", svg], "takes a file"),
                                (["memory", svg, numbers, "--line", "99"], "line 99"),
                                (["memory", svg, numbers, "--unit", "no"], "unit no"),
                                (["memory", svg, ROOT / "README.md"], "README.md")):
            done = subprocess.run([*draw, *arguments], capture_output=True, text=True)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(word, done.stderr.splitlines()[-1])
        # Units without gates, a constant gate and a single piece.
        self.explain("rnn", *RNN)
        data = json.loads(numbers.read_text(encoding="utf-8"))
        mixed, single, constant = (self.root / f"{name}.json"
                                   for name in ("mixed", "single", "constant"))
        data["units"][1]["gates"], data["sentences"][0]["units"][1] = False, None
        mixed.write_text(json.dumps(data), encoding="utf-8")
        data["sentences"][0]["source_pieces"] = ["</s>"]
        single.write_text(json.dumps(data), encoding="utf-8")
        figures = ("positions", "strongest", "memory")
        for file, options, word in ((self.root / "rnn.json", [], "no unit of the model has gates"),
                                    (mixed, ["--unit", data["units"][1]["name"]], "has no gates"),
                                    (single, [], "a single piece")):
            for figure in figures if file != single else figures[1:]:
                with self.subTest(figure=figure, word=word):
                    done = subprocess.run([*draw, figure, svg, file, *options],
                                          capture_output=True, text=True)
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1),
                                     done.stderr)
                    self.assertIn(word, done.stderr)
        data["overall"][0]["forget"] = [0.5] * len(data["overall"][0]["forget"])
        constant.write_text(json.dumps(data), encoding="utf-8")
        subprocess.run([*draw, "positions", svg, constant, "--at-least", "1"], check=True)
        self.assertIn("a gate is constant", svg.read_text(encoding="utf-8"))

    def test_bad_input_is_one_line(self):
        model = self.model("lrn", *LRN)
        for status, args, word in ((2, [], "-m DIR"), (2, ["-m", self.root / "none"], "none"),
                                   (2, ["-m", model, "-i", self.root / "missing"], "missing"),
                                   (2, ["-m", model, "-i", self.root], str(self.root)),
                                   (3, ["-m", model], "the input is empty"),
                                   (2, ["-m", model, "--beam-size", "0"], "beam-size"),
                                   (2, ["-m", model, "--heads", "2"], "heads"),
                                   (2, ["-m", model, "-o", self.root, "--", "a"], str(self.root)),
                                   (2, ["-m", model, "--json", "-", "--", "a"], "json"),
                                   (2, ["-m", model, "--gates", "/dev/stdout", "--", "a"], "gates"),
                                   (2, ["-m", model, "-o", self.root / "p", "--json", "-",
                                        "--gates", "-", "--", "a"], "gates")):
            with self.subTest(args=[str(a) for a in args]):
                done = run(*args, status=status, stdin=b"")
                self.assertEqual(done.stdout, b"")
                errors = [line for line in done.stderr.decode().splitlines()
                          if line.startswith("error: ")]
                self.assertEqual(len(errors), 1, done.stderr)
                self.assertIn(word, errors[0])

    def test_odd_input(self):
        model = self.model("lrn", *LRN)
        done = run("-m", model, "--sentences", "2", stdin=b"a\n\xff\xfe b\r\nc\n")
        self.assertIn(b"first 2 of 3 lines", done.stderr)
        self.assertEqual([s["source"] for s in page_data(done.stdout.decode())["sentences"]],
                         ["a", "\ufffd\ufffd b"])
        done = run("-m", model, "--max-length", "5", "--",
                   "one two three four five six seven eight nine")
        # with </s>
        self.assertEqual(len(page_data(done.stdout.decode())["sentences"][0]["source_pieces"]), 6)
        self.assertIn(b"warning", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
