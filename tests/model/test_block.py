#!/usr/bin/env python3
"""Blocks from end to end: scores against numpy, batches, programs over a block model, bad settings.
Usage: test_block.py BIN_DIR [test names]"""
import functools
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
E, H = 12, 10
SMALL = ["--type", "block", "--dim-emb", str(E), "--enc-depth", "2", "--dec-depth", "2",
         "--no-layer-normalization", "--vocab-type", "words", "--dropout", "0.1",
         "--learn-rate", "0.02", "--lr-warmup", "0u", "--mini-batch-words", "300", "--after", "30u",
         "--disp-freq", "30u", "--valid-freq", "30u", "--save-freq", "30u",
         "--valid-metrics", "cross-entropy", "--cpu-threads", "1", "--products", "own", "--quiet"]
ATTENTION = ["--encoder-mixer", "attention", "--encoder-heads", "3", "--feed-forward", "relu",
             "--decoder-feed-forward", "none", "--gate-branch", "none", "--unit", "ssru",
             "--attention", "dot", "--heads", "2"]
HEADS, K = 2, 3
STATE = ["--state-heads", str(HEADS), "--state-width", str(K)]
SETTINGS = {
    "attention": ATTENTION,
    "attention-without-positions": [*ATTENTION, "--encoder-positions", "none"],
    "alternating": ["--unit", "rglru", "--feed-forward-width", "18", "--convolution", "3"],
    "joined": ["--unit", "ssru", "--encoder-directions", "joined", "--gate-branch", "silu",
               "--convolution", "2", "--decoder-feed-forward", "relu", "--dim-attention", "8"],
    "unprojected": ["--unit", "ssru", "--gate-branch", "none", "--no-unit-projection",
                    "--dim-rnn", str(E)],
    "gla-gdn": ["--enc-cell", "gla", "--dec-cell", "gdn", "--feed-forward", "none", *STATE],
    "mlstm-mamba": ["--enc-cell", "mlstm", "--dec-cell", "mamba", "--feed-forward", "none",
                    "--convolution", "2", *STATE],
    "joined-gla": ["--unit", "gla", "--encoder-directions", "joined", "--feed-forward", "none",
                   *STATE],
    "hgrn2": ["--unit", "hgrn2", "--feed-forward", "none", *STATE],
}


def small(options):
    return [*SMALL, *([] if "--dim-rnn" in options else ["--dim-rnn", str(H)]), *options]


def run(tool, *args, status=0, stdin=None):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, text=True,
                          timeout=300, input=stdin)
    if done.returncode != status:
        raise AssertionError(f"{tool} {' '.join(map(str, args))}: status {done.returncode}, not "
                             f"{status}\n{done.stdout}{done.stderr}")
    return done


def tensors(model):
    """The tensors of the published checkpoint."""
    return read_tensors(model / "latest" / "model.safetensors")


def read_tensors(file):
    """The tensors of a file in double, read without the code under test."""
    raw = file.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    body = raw[8 + size:]
    return {name: np.frombuffer(body[slice(*d["data_offsets"])], "<f4").reshape(d["shape"])
            .astype(np.float64)
            for name, d in json.loads(raw[8:8 + size]).items() if name != "__metadata__"}


def words_of(model):
    """The words of a vocabulary of type WORD, from its protocol buffer."""
    raw = next(model.glob("*.spm")).read_bytes()
    names, at = [], 0
    while at < len(raw) and raw[at] == 0x0A:
        piece = raw[at + 2:at + 2 + raw[at + 1]]
        names.append(piece[2:2 + piece[1]].decode("utf-8").replace("\u2581", ""))
        at += 2 + raw[at + 1]
    return names


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalize(x, t, name):
    centered = x - x.mean(-1, keepdims=True)
    return (centered / np.sqrt((centered ** 2).mean(-1, keepdims=True) + 1e-6)
            * t[name + "_gain"] + t[name + "_bias"])


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


GATES = {"gelu": gelu, "silu": lambda x: x * sigmoid(x)}


def unit_length(x):
    return x / np.sqrt((x ** 2).sum(-1, keepdims=True))


# A step of a matrix-state unit: the state S of a head [channels,K], n, the planes of the head, its
# scalars, those of its channels, and its trained vectors and rows -> S, n, h.
def gla(s, n, planes, scalars, x, vectors, rows):
    q, k, a = planes
    s = s @ np.diag(sigmoid(a) ** (1 / 16)) + np.outer(x[0], k)
    return s, n, s @ q


def hgrn2(s, n, planes, scalars, x, vectors, rows):
    q, f = planes[0], sigmoid(planes[1])
    s = s @ np.diag(f) + np.outer(x[0], 1 - f)
    return s, n, s @ q


def gdn(s, n, planes, scalars, x, vectors, rows):
    (q, k), (alpha, beta) = map(unit_length, planes), sigmoid(scalars)
    s = alpha * s @ (np.eye(K) - beta * np.outer(k, k)) + beta * np.outer(x[0], k)
    return s, n, s @ q


def mlstm(s, n, planes, scalars, x, vectors, rows):
    (q, k), i, f = planes, np.exp(scalars[0]), sigmoid(scalars[1])
    k = k / np.sqrt(K)
    s, n = f * s + i * np.outer(x[0], k), f * n + i * k
    return s, n, sigmoid(x[1]) * (s @ q) / max(abs(n @ q), 1)


def mamba(s, n, planes, scalars, x, vectors, rows):
    u, delta = x[0], np.log1p(np.exp(x[1] + vectors[1]))
    s = np.exp(delta[:, None] * -np.exp(rows.T)) * s + np.outer(delta * u, planes[0])
    return s, n, s @ planes[1] + vectors[0] * u


MATRIX_UNITS = {"gla": (gla, 3, 0), "hgrn2": (hgrn2, 2, 0), "gdn": (gdn, 2, 2),
                "mlstm": (mlstm, 2, 2), "mamba": (mamba, 2, 0)}  # planes and scalars of a head


# Input and forget gates of a head, as nmt-explain saves them: one of each, one for each column of
# S, or one for each of its numbers.
GATES_OF_HEADS = {
    "gla": lambda planes, scalars, x, vectors, rows: (np.ones(K), sigmoid(planes[2]) ** (1 / 16)),
    "hgrn2": lambda planes, scalars, x, vectors, rows: (1 - sigmoid(planes[1]), sigmoid(planes[1])),
    "gdn": lambda planes, scalars, x, vectors, rows: (sigmoid(scalars[1:]), sigmoid(scalars[:1])),
    "mlstm": lambda planes, scalars, x, vectors, rows: (np.exp(scalars[:1]), sigmoid(scalars[1:])),
    "mamba": lambda planes, scalars, x, vectors, rows: mamba_gates(
        np.log1p(np.exp(x[1] + vectors[1])), rows),
}


def mamba_gates(delta, rows):
    return np.repeat(delta, K), np.exp(delta[:, None] * -np.exp(rows.T)).ravel()


class Reference:
    """A block model in double, from the equations of docs/reference/models.md, sentence by
    sentence."""

    def __init__(self, model):
        self.t = tensors(model)
        self.s = json.loads((model / "config.json").read_text())["model"]
        self.gates = {}  # by layer, of the last sentence: [steps, 2, values]

    def unit(self, name, x, backward=False):
        """Equations of Kim et al. 2019 and of De et al. 2024."""
        t, vector = self.t, self.t[name + ".vectors"].ravel()
        out, state = np.zeros((len(x), len(vector))), np.zeros(len(vector))
        if name + ".convolution" in t:
            x = self.convolved(name + ".convolution", x, backward)
        projected = x @ t[name + ".input_projection"] + t.get(name + ".input_projection_bias", 0)
        for step in reversed(range(len(x))) if backward else range(len(x)):
            planes = np.split(projected[step], len(projected[step]) // len(vector))
            if len(planes) == 2:
                f = sigmoid(planes[0] + vector)
                state = f * state + (1 - f) * planes[1]
                out[step] = np.maximum(state, 0)
            else:
                a = np.exp(-8 * np.log1p(np.exp(vector)) * sigmoid(planes[0]))
                state = a * state + np.sqrt(1 - a * a) * sigmoid(planes[1]) * planes[2]
                out[step] = state
        return out

    def convolved(self, name, x, backward):
        """y_t = b + sum over k of w_k * x_(t-k), or x_(t+k)."""
        ahead = x[::-1] if backward else x
        y = np.tile(self.t[name + "_bias"], (len(x), 1))
        for k, w in enumerate(self.t[name]):
            y[k:] += w * ahead[:max(len(x) - k, 0)]
        return y[::-1] if backward else y

    def matrix_unit(self, cell, name, x, backward=False):
        """Equations of the papers that docs/reference/units.md names, with whole matrices."""
        t, (equations, planes, scalars), size = self.t, MATRIX_UNITS[cell], H // HEADS
        if name + ".convolution" in t:
            x = self.convolved(name + ".convolution", x, backward)
        projected = x @ t[name + ".input_projection"] + t.get(name + ".input_projection_bias", 0)
        shared = x @ t[name + ".head_projection"] + t[name + ".head_projection_bias"]
        vectors, rows = (t.get(name + ".vectors", np.zeros((0, H))),
                         t.get(name + ".rows", np.zeros((K, H))))
        out, gates = np.zeros((len(x), H)), [[] for _ in x]
        for head in range(HEADS):
            own, s, n = slice(head * size, (head + 1) * size), np.zeros((size, K)), np.zeros(K)
            for step in reversed(range(len(x))) if backward else range(len(x)):
                of_head = shared[step].reshape(HEADS, planes * K + scalars)[head]
                read = (of_head[:planes * K].reshape(planes, K), of_head[planes * K:],
                        projected[step].reshape(-1, H)[:, own], vectors[:, own], rows[:, own])
                gates[step].append(GATES_OF_HEADS[cell](*read))
                s, n, out[step, own] = equations(s, n, *read)
            if name + ".head_norm_gain" in t:
                norm = {f"norm_{part}": t[f"{name}.head_norm_{part}"][own]
                        for part in ("gain", "bias")}
                out[:, own] = normalize(0.01 * out[:, own], norm, "norm")  # epsilon 0.01
        self.gates[name] = np.array([np.concatenate(heads, -1) for heads in gates])
        return out

    def gated(self, name, x, directions):
        t, cell = self.t, self.s["enc-cell" if name.startswith("encoder") else "dec-cell"]
        run = functools.partial(self.matrix_unit, cell) if cell in MATRIX_UNITS else self.unit
        if directions == "both":
            h = np.concatenate([run(name + ".forward", x), run(name + ".backward", x, True)], -1)
        else:
            h = run(name, x, directions == "backward")
        return self.joined(name, x, h)

    def joined(self, name, x, h):
        """The gate branch and the output projection."""
        t = self.t
        if self.s["gate-branch"] != "none":
            h = GATES[self.s["gate-branch"]](x @ t[name + ".gate_projection"]) * h
        return h @ t[name + ".output_projection"] if self.s["unit-projection"] else h

    def self_attention(self, name, x):
        heads, size = self.s["encoder-heads"], E // self.s["encoder-heads"]
        joined = (x @ self.t[name + ".joined_projection"]).reshape(len(x), heads, 3, size)
        steps = np.arange(len(x)) * (self.s["encoder-positions"] == "rotary")
        angle = np.exp(1j * steps[:, None] * 10000.0 ** (-2 * np.arange(size // 2) / size))
        out = []
        for head in range(heads):
            q, k, v = (joined[:, head, part] for part in range(3))
            q, k = ((y[:, :size // 2] + 1j * y[:, size // 2:]) * angle for y in (q, k))
            weights = softmax((q @ k.conj().T).real / np.sqrt(size))
            out.append(weights @ v)
        return np.concatenate(out, -1) @ self.t[name + ".output_projection"]

    def attention(self, name, x, memory):
        t, heads = self.t, self.s["heads"]
        q, k, v = (x @ t[name + ".query_projection"], memory @ t[name + ".memory_projection"],
                   memory @ t[name + ".value_projection"])
        out = []
        for part in np.split(np.arange(q.shape[1]), heads):
            if self.s["attention"] == "dot":
                scores = q[:, part] @ k[:, part].T / np.sqrt(len(part))
            else:
                scores = np.tanh(q[:, None, part] + k[None, :, part]) @ t[name + ".v"][part, 0]
            out.append(softmax(scores) @ v[:, part])
        return np.concatenate(out, -1) @ t[name + ".output_projection"]

    def feed_forward(self, name, x, kind):
        t, gate = self.t, x @ self.t[name + ".gate_projection"]
        if kind == "swiglu":
            return ((gate * sigmoid(gate) * (x @ t[name + ".input_projection"]))
                    @ t[name + ".output_projection"])
        return np.maximum(gate + t[name + ".gate_projection_bias"],
                          0) @ t[name + ".output_projection"] + t[name + ".output_projection_bias"]

    def score(self, source, target):
        """log p of a target with </s>, whose first input is <s>."""
        t, s = self.t, self.s
        scale = np.sqrt(E) if s["embedding-scale"] == "sqrt" else 1.0
        x = scale * t.get("encoder.embedding", t["decoder.embedding"])[source]
        for layer in range(2):
            at = f"encoder.layer_{layer}"
            directions = ("both" if s["encoder-directions"] == "joined"
                          else ("forward", "backward")[layer])
            f = normalize(x, t, at + ".mixer_norm")
            x = x + (self.self_attention(at + ".self_attention", f) if s["encoder-mixer"]
                     == "attention" else self.gated(at + ".unit", f, directions))
            if s["feed-forward"] != "none":
                x = x + self.feed_forward(at + ".feed_forward",
                                          normalize(x, t, at + ".feed_forward_norm"),
                                          s["feed-forward"])
        memory, y = (normalize(x, t, "encoder.norm"),
                     scale * t["decoder.embedding"][[1, *target[:-1]]])
        kind = (s["feed-forward"] if s["decoder-feed-forward"] == "auto"
                else s["decoder-feed-forward"])
        for layer in range(2):
            at = f"decoder.layer_{layer}"
            y = y + self.gated(at + ".unit", normalize(y, t, at + ".unit_norm"), "forward")
            y = y + self.attention(at + ".attention",
                                   normalize(y, t, at + ".attention_norm"), memory)
            if kind != "none":
                y = y + self.feed_forward(at + ".feed_forward",
                                          normalize(y, t, at + ".feed_forward_norm"), kind)
        logits = (normalize(y, t, "decoder.norm")
                  @ t.get("decoder.output", t["decoder.embedding"]).T + t["decoder.output_bias"])
        return sum(np.log(softmax(logits)[range(len(target)), target]))


class BlockTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "200",
                        "--valid", "20", "--test", "3", cls.dir], check=True)
        cls.valid = [cls.dir / "valid.en", cls.dir / "valid.de"]
        for name, options in SETTINGS.items():
            run("nmt-train", cls.dir / "train.en", cls.dir / "train.de", "--valid-sets", *cls.valid,
                "--model", cls.dir / name, *small(options))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_scores_are_numpys(self):
        for name in SETTINGS:
            with self.subTest(name):
                model = self.dir / name
                reference, ids = (Reference(model),
                                  {word: i for i, word in enumerate(words_of(model))})
                expected = [reference.score(*([ids.get(word, 0) for word in line.split()] + [2]
                                              for line in pair))
                            for pair in zip(*(file.read_text(encoding="utf-8").splitlines()
                                              for file in self.valid))]
                scores = [float(line)
                          for line in run("nmt-score", "-m", model, *self.valid).stdout.split()]
                self.assertEqual(len(scores), len(expected))
                np.testing.assert_allclose(scores, expected, rtol=2e-5)

    def test_gates_are_numpys(self):
        """nmt-explain of units with a matrix state; both sides of a model, and both directions."""
        text, seen = self.valid[0].read_text(encoding="utf-8"), set()
        for name in SETTINGS:
            model, numbers, gates = (self.dir / name, self.dir / "gates.json",
                                     self.dir / "gates.safetensors")
            reference, ids = Reference(model), {word: i for i, word in enumerate(words_of(model))}
            if not {reference.s["enc-cell"], reference.s["dec-cell"]} & set(MATRIX_UNITS):
                continue
            with self.subTest(name):
                run("nmt-explain", "-m", model, "-o", self.dir / "page.html", "--json", numbers,
                    "--gates", gates, "--sentences", "3", "--quiet", stdin=text)
                data, saved = json.loads(numbers.read_text(encoding="utf-8")), read_tensors(gates)
                for sentence in data["sentences"]:
                    reference.score(*([ids[piece.removeprefix("\u2581")]
                                       for piece in sentence[f"{side}_pieces"]]
                                      for side in ("source", "target")))
                    for unit, told in zip(data["units"], sentence["units"], strict=True):
                        self.assertTrue(unit["gates"])
                        seen.add(unit["unit"])
                        expected = reference.gates[unit["name"]]
                        self.assertEqual(unit["gate_values"], expected.shape[-1])
                        for side, gate in enumerate(("input", "forget")):
                            np.testing.assert_allclose(
                                saved[f"{sentence['line']}.{unit['name']}.{gate}"],
                                expected[:, side], rtol=2e-5, atol=1e-6)
                            np.testing.assert_allclose(told[gate],
                                                       expected[:, side].mean(-1), rtol=2e-5)
                        # the weight of the first piece read in the state after the last one
                        order = (slice(None) if unit["direction"] == "forward"
                                 else slice(None, None, -1))
                        i, f = expected[order, 0], expected[order, 1]
                        first = told["memory"][0 if unit["direction"] == "forward" else -1]
                        np.testing.assert_allclose(first[-1],
                                                   (i[0] * f[1:].prod(0)).mean(), rtol=1e-4)
        self.assertEqual(seen, set(MATRIX_UNITS))

    def test_batches_and_threads_change_no_byte(self):
        text = self.valid[0].read_text(encoding="utf-8")
        for name in SETTINGS:
            outputs = {run("nmt-translate", "-m", self.dir / name, "--n-best", "--quiet", *options,
                           stdin=text).stdout
                       for options in (["--mini-batch", "1", "--cpu-threads", "1"],
                                       ["--cpu-threads", "2", "--workers", "1"],
                                       ["--mini-batch", "7", "--maxi-batch-sort", "none",
                                        "--cpu-threads", "1"])}
            self.assertEqual(len(outputs), 1, name)

    def test_skipped_zeros_change_no_byte(self):
        """One sentence at a time skips zeros after ReLU in int8 where the model is wide enough; a
        batch does not."""
        wide = ["--unit", "ssru", "--gate-branch", "none", "--no-unit-projection",
                "--dim-rnn", "256", "--feed-forward", "relu", "--feed-forward-width", "512"]
        options = small(wide)
        options[options.index("--dim-emb") + 1] = "256"
        run("nmt-train", self.dir / "train.en", self.dir / "train.de", "--valid-sets", *self.valid,
            "--model", self.dir / "wide", *options)
        run("nmt-convert", "-m", self.dir / "wide", "-o", self.dir / "wide-int8",
            "--precision", "int8", "--no-check", "--quiet")
        text = self.valid[0].read_text(encoding="utf-8")
        outputs = {run("nmt-translate", "-m", self.dir / "wide-int8", "-b", "1", "--n-best",
                       "--quiet", *more, stdin=text).stdout
                   for more in (["--mini-batch", "8", "--cpu-threads", "1"],
                                ["--mini-batch", "1", "--cpu-threads", "1"],
                                ["--mini-batch", "1", "--cpu-threads", "2", "--workers", "1"],
                                ["--mini-batch", "1", "--cpu-threads", "1", "--workers", "2"])}
        self.assertEqual(len(outputs), 1)

    def test_programs(self):
        text = self.valid[0].read_text(encoding="utf-8")
        for name in SETTINGS:
            model, int8 = self.dir / name, self.dir / (name + "-int8")
            run("nmt-convert", "-m", model, "-o", int8, "--precision", "int8",
                "--no-check", "--quiet")
            lines = run("nmt-translate", "-m", int8, "--quiet", stdin=text).stdout.splitlines()
            self.assertEqual(len(lines), 20)
            run("nmt-average", "-m", model, "-o", self.dir / (name + "-mean"), "--quiet")
            mean = run("nmt-translate", "-m", self.dir / (name + "-mean"), "--quiet",
                       stdin=text).stdout
            self.assertEqual(len(mean.splitlines()), 20)
            page, numbers = self.dir / "page.html", self.dir / "page.json"
            run("nmt-explain", "-m", model, "-o", page, "--json", numbers, "--quiet", stdin=text)
            self.assertEqual(len(json.loads(numbers.read_text())["sentences"]), 20)
            told = json.loads(run("nmt-info", "--json", model).stdout)
            self.assertEqual(told["parameters"]["total"],
                             sum(tensor.size for tensor in tensors(model).values()))
            self.assertEqual(told["units"]["encoder"] is None, name.startswith("attention"))
            self.assertIn("block, self-attention" if name.startswith("attention") else "block, ",
                          numbers.read_text())

    def test_meaningless_settings(self):
        for options, said in (
                (["--type", "deep", "--encoder-heads", "4"], "encoder-heads (type is deep)"),
                (["--type", "seq2seq", "--decoder-feed-forward", "relu"],
                 "decoder-feed-forward (type is seq2seq)"),
                (["--encoder-positions", "none"], "encoder-positions (encoder-mixer is recurrent)"),
                ([*ATTENTION, "--encoder-directions", "joined"],
                 "encoder-directions (encoder-mixer is attention)"),
                ([*ATTENTION, "--enc-cell", "rglru"], "enc-cell (encoder-mixer is attention)"),
                ([*ATTENTION, "--unit", "gru", "--state-width", "8"],
                 "state-width (unit gru has no matrix state)"),
                ([*ATTENTION, "--unit", "gru", "--forget-gate", "paper"],
                 "forget-gate (unit gru has no such variant)"),
                ([*ATTENTION, "--encoder-heads", "5"],
                 "encoder-heads: 5 does not divide dim-emb 12"),
                ([*ATTENTION, "--encoder-heads", "4"], "4 heads of 3 channels"),
                (["--no-unit-projection"],
                 "unit-projection: without it, states must have the width dim-emb 12, not 10"),
                (["--no-unit-projection", "--encoder-directions", "joined", "--dim-rnn", "12"],
                 "unit-projection: encoder-directions joined needs it"),
                (["--convolution", "1"], "convolution: 1 taps; 0 (none) or at least 2"),
                (["--heads", "5"], "heads: 5 must divide"),
                (["--unit", "gla", "--state-heads", "4"],
                 "state-heads: 4 does not divide the width 10 of unit gla"),
                (["--unit", "gla", "--state-width", "65"],
                 "--state-width: '65' is not an integer from 1 to 64"),
                (["--attention", "none"], "attention none"),
                (["--attention-projections"], "attention-projections"),
                (["--attention-query", "recurrent"], "attention-query"),
                (["--no-upper-context"], "upper-context"),
                (["--context-aware"], "context-aware"),
                (["--dim-enc-upper", "20"], "dim-enc-upper")):
            with self.subTest(options):
                done = run("nmt-info", *small(options), "--dim-vocabs", "100", status=2)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
