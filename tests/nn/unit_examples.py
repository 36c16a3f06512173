#!/usr/bin/env python3
"""Worked examples of the recurrent units: each one written out in numpy from the papers' equations
(docs/reference/units.md), for two sentences of three and two steps. Prints the states h of every
step as unit_examples.inc holds them:

    python3 tests/nn/unit_examples.py > tests/nn/unit_examples.inc

Numbers come from fill(), which unit_examples_test.cpp types again."""

import numpy as np

# steps, sentences, input, width, positions with a vector of their own
T, B, M, H, P = 3, 2, 3, 2, 2
LENGTHS = [3, 2]


def fill(seed, *shape):
    """0.9 sin(seed + 1.7 k) for the k-th number."""
    return 0.9 * np.sin(seed + 1.7 * np.arange(int(np.prod(shape)))).reshape(shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def planes(matrix, count):
    """The gates' matrices, side by side along the last axis."""
    return np.split(matrix, count, axis=-1) if count else []


class Weights:
    """Of a unit with so many matrices over the input and over the state."""

    def __init__(self, inputs, recurrents):
        self.W = planes(fill(1, M, inputs * H), inputs)
        self.U = planes(fill(2, H, recurrents * H), recurrents)
        self.b = planes(fill(3, (recurrents or inputs) * H), recurrents or inputs)
        self.v = planes(fill(4, 2 * H), 2)  # vectors
        self.s = fill(5, P, H)  # a vector of each position


# Each unit: weights, then step(x, h, c, t) -> h, c.


def rnn(h_, c_, x, w, t):
    return np.tanh(x @ w.W[0] + h_ @ w.U[0] + w.b[0]), c_


def srn(h_, c_, x, w, t):
    c = x @ w.W[0] + c_ @ w.U[0] + w.b[0]
    return np.tanh(c), c


def lstm(reads_state):
    def step(h_, c_, x, w, t):
        gates = [x @ w.W[k] + (h_ @ w.U[k] if reads_state else 0) + w.b[k] for k in range(4)]
        i, f, o = [sigmoid(gate) for gate in gates[:3]]
        c = f * c_ + i * np.tanh(gates[3])
        return o * np.tanh(c), c

    return step


def gru(after):
    def step(h_, c_, x, w, t):
        z, r = [sigmoid(x @ w.W[k] + h_ @ w.U[k] + w.b[k]) for k in range(2)]
        if after:
            n = np.tanh(x @ w.W[2] + r * (h_ @ w.U[2] + w.b[2]))
        else:
            n = np.tanh(x @ w.W[2] + (r * h_) @ w.U[2] + w.b[2])
        return z * h_ + (1 - z) * n, c_

    return step


def ran(g):
    def step(h_, c_, x, w, t):
        i = sigmoid(x @ w.W[1] + h_ @ w.U[0] + w.b[0])
        f = sigmoid(x @ w.W[2] + h_ @ w.U[1] + w.b[1])
        c = i * (x @ w.W[0]) + f * c_
        return g(c), c

    return step


def atr(paper, complement):
    def step(h_, c_, x, w, t):
        p, q = h_ @ w.U[0] + w.b[0], x @ w.W[0]
        f = sigmoid(p - q) if paper else sigmoid(q - p)
        i = 1 - f if complement else sigmoid(p + q)
        return i * q + f * h_, c_

    return step


def sru(h_, c_, x, w, t):
    f = sigmoid(x @ w.W[0] + w.v[0] * c_)
    c = f * c_ + (1 - f) * (x @ w.W[1])
    r = sigmoid(x @ w.W[2] + w.v[1] * c_)
    return r * c + (1 - r) * (x @ w.W[3]), c


def lrn(g):
    def step(h_, c_, x, w, t):
        q, k, v = [x @ m for m in w.W]
        return g(sigmoid(k + h_) * v + sigmoid(q - h_) * h_), c_

    return step


def olrn(h_, c_, x, w, t):
    q, k, v, o = [x @ m for m in w.W]
    c = sigmoid(k + h_) * v + sigmoid(q - h_) * h_
    return sigmoid(o - c) * c, c_


def glrn(g):
    def step(h_, c_, x, w, t):
        q, v = [x @ m for m in w.W]
        f = sigmoid(q - h_)
        return g((1 - f) * v + f * h_), c_

    return step


def elrn(g):
    def step(h_, c_, x, w, t):
        f = sigmoid(-h_)
        return g((1 - f) * (x @ w.W[0]) + f * h_), c_

    return step


def ssru(h_, c_, x, w, t):
    f = sigmoid(x @ w.W[0] + w.v[0])
    c = f * c_ + (1 - f) * (x @ w.W[1])
    return np.maximum(c, 0), c


def positive(x):
    return np.where(x >= 0, x + 0.5, sigmoid(x))


def mingru(h_, c_, x, w, t):
    z = sigmoid(x @ w.W[0] + w.b[0])
    return (1 - z) * h_ + z * positive(x @ w.W[1] + w.b[1]), c_


def minlstm(h_, c_, x, w, t):
    f, i = [sigmoid(x @ w.W[k] + w.b[k]) for k in range(2)]
    return f / (f + i) * h_ + i / (f + i) * positive(x @ w.W[2] + w.b[2]), c_


def rglru(h_, c_, x, w, t):
    r, i = [sigmoid(x @ w.W[k] + w.b[k]) for k in range(2)]
    a = np.exp(-8 * np.log1p(np.exp(w.v[0])) * r)
    return a * h_ + np.sqrt(1 - a**2) * i * (x @ w.W[2] + w.b[2]), c_


def hgrn(h_, c_, x, w, t):
    bound = sigmoid(w.v[0])
    forget = bound + (1 - bound) * sigmoid(x @ w.W[0] + w.b[0])
    c = x @ w.W[1] + w.b[1]
    return forget * h_ + (1 - forget) * c * sigmoid(c), c_


def slstm(h_, states, x, w, t):
    """The paper's states c, n and m, from 0."""
    c_, n_, m_ = states if isinstance(states, tuple) else (states, states, states)
    i, f, z, o = [x @ w.W[k] + h_ @ w.U[k] + w.b[k] for k in range(4)]
    m = np.maximum(np.log(sigmoid(f)) + m_, i)
    i, f = np.exp(i - m), np.exp(np.log(sigmoid(f)) + m_ - m)
    c, n = f * c_ + i * np.tanh(z), f * n_ + i
    return sigmoid(o) * c / n, (c, n, m)


def elstm(form, reads_state):
    def step(h_, c_, x, w, t):
        gates = [x @ w.W[k] + (h_ @ w.U[k] if reads_state else 0) + w.b[k]
                 for k in range(4 if form == 1 else 3)]
        i, f, o, g = gates if form == 1 else (gates[0], None, gates[1], gates[2])
        c = (c_ if form == 2 else sigmoid(f) * c_) + w.s[min(t, P - 1)] * sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c + w.v[0]), c

    return step


def identity(x):
    return x


UNITS = [
    ("lrn", "activation=tanh", 3, 0, lrn(np.tanh)),
    ("lrn", "activation=identity", 3, 0, lrn(identity)),
    ("olrn", "", 4, 0, olrn),
    ("glrn", "activation=tanh", 2, 0, glrn(np.tanh)),
    ("glrn", "activation=identity", 2, 0, glrn(identity)),
    ("elrn", "activation=tanh", 1, 0, elrn(np.tanh)),
    ("elrn", "activation=identity", 1, 0, elrn(identity)),
    ("sru", "", 4, 0, sru),
    ("ssru", "", 2, 0, ssru),
    ("mingru", "", 2, 0, mingru),
    ("minlstm", "", 3, 0, minlstm),
    ("rglru", "", 3, 0, rglru),
    ("hgrn", "", 2, 0, hgrn),
    ("gru", "reset=before", 3, 3, gru(False)),
    ("gru", "reset=after", 3, 3, gru(True)),
    ("lstm", "input=xh", 4, 4, lstm(True)),
    ("lstm", "input=x", 4, 0, lstm(False)),
    ("slstm", "", 4, 4, slstm),
    ("rnn", "", 1, 1, rnn),
    ("srn", "", 1, 1, srn),
    ("atr", "forget-gate=released input-gate=own", 1, 1, atr(False, False)),
    ("atr", "forget-gate=released input-gate=complement", 1, 1, atr(False, True)),
    ("atr", "forget-gate=paper input-gate=own", 1, 1, atr(True, False)),
    ("atr", "forget-gate=paper input-gate=complement", 1, 1, atr(True, True)),
    ("ran", "activation=tanh", 3, 2, ran(np.tanh)),
    ("ran", "activation=identity", 3, 2, ran(identity)),
    ("elstm1", "input=xh", 4, 4, elstm(1, True)),
    ("elstm1", "input=x", 4, 0, elstm(1, False)),
    ("elstm2", "input=xh", 3, 3, elstm(2, True)),
    ("elstm2", "input=x", 3, 0, elstm(2, False)),
]


def run(inputs, recurrents, step, reverse):
    """h [T,B,H] from states 0; a padded step leaves the states as they are."""
    w, x = Weights(inputs, recurrents), fill(6, T, B, M)
    out = np.zeros((T, B, H))
    for b in range(B):
        h, c = np.zeros(H), np.zeros(H)
        for t in reversed(range(T)) if reverse else range(T):
            if t < LENGTHS[b]:
                h, c = step(h, c, x[t, b], w, t)
            out[t, b] = h
    return out


def main():
    print("// Printed by unit_examples.py: unit, variant, direction, h [3 steps, 2 sentences, "
          "width 2].")
    for name, variant, inputs, recurrents, step in UNITS:
        for reverse in (False, True):
            numbers = ", ".join(f"{value:.9f}"
                                for value in run(inputs, recurrents, step, reverse).ravel())
            print(f'{{"{name}", "{variant}", {str(reverse).lower()},\n {{{numbers}}}}},')


if __name__ == "__main__":
    main()
