#!/usr/bin/env python3
"""Counts the places that adding a unit, a unit with a matrix state, an op, an option, an
architecture and a program touches: adds one of each to a copy of the tree, builds the copy without
CUDA, uses what was added, and prints the files and lines.

    count_places.py [--scratch DIR] [--only unit,matrix-unit,...] [--no-build]

The copy stays in the scratch folder when one is named. Exit status 1 where an addition does not
work, or where its anchor is no longer in the tree."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/tree"), str(ROOT / "scripts/bench")]
from common import arguments as checks  # noqa: E402
from files import project_files  # noqa: E402

# The most states that a unit may have (max_states), and a recurrent product.
TRIAL = """#pragma once

// Three moving averages, each of the one before it.
// Planes of xW: f, z; of h'U: the same.
//   f = sigmoid(xWf + h'Uf)
//   a = f * a' + (1 - f) * tanh(xWz + h'Uz)
//   b = f * b' + (1 - f) * a
//   c = f * c' + (1 - f) * b
//   h = tanh(a + c)

#include "units/step.h"

namespace nmt::units {

struct Trial {
  static constexpr int inputs = 2, recurrents = 2, late = 0, vectors = 0, states = 4;
  static constexpr bool bias = true;

  template <class T>
  NMT_HOST_DEVICE static void forward(const Step<T, Trial>& step, T (&next)[4]) {
    const T f = math::sigmoid<T>(plane(step, 0));
    next[1] = f * step.s[1] + (T(1) - f) * math::tanh<T>(plane(step, 1));
    next[2] = f * step.s[2] + (T(1) - f) * next[1];
    next[3] = f * step.s[3] + (T(1) - f) * next[2];
    next[0] = math::tanh<T>(next[1] + next[3]);
  }

  template <class T>
  NMT_HOST_DEVICE static void backward(const Step<T, Trial>& step, const T (&dnext)[4],
                                       Step<T, Trial>& d) {
    const T f = math::sigmoid<T>(plane(step, 0)), z = math::tanh<T>(plane(step, 1));
    T next[4];
    forward(step, next);
    const T dsum = dnext[0] * tanh_slope(next[0]);
    const T dc = dnext[3] + dsum;
    const T db = dnext[2] + dc * (T(1) - f);
    const T da = dnext[1] + dsum + db * (T(1) - f);
    const T df = da * (step.s[1] - z) + db * (step.s[2] - next[1]) + dc * (step.s[3] - next[2]);
    d.x[0] = d.u[0] = df * sigmoid_slope(f);
    d.x[1] = d.u[1] = da * (T(1) - f) * tanh_slope(z);
    d.s[0] = T(0);
    d.s[1] = da * f;
    d.s[2] = db * f;
    d.s[3] = dc * f;
  }
};

}  // namespace nmt::units
"""

RELU = {
    "src/kernels/relu.h": """#pragma once

#include "kernels/handles.h"

#include <cstdint>

namespace nmt::kernels {

/// y = max(x, 0); y may be x.
NMT_KERNEL(relu_forward, std::int64_t n, const float* x, float* y);
/// dx += dy where y > 0
NMT_KERNEL(relu_backward, std::int64_t n, const float* y, const float* dy, float* dx);

}  // namespace nmt::kernels
""",
    "src/kernels/relu.cpp": """#include "kernels/relu.h"

namespace nmt::kernels {

void relu_forward(const Cpu&, std::int64_t n, const float* x, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void relu_backward(const Cpu&, std::int64_t n, const float* y, const float* dy, float* dx) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] += y[i] > 0.0f ? dy[i] : 0.0f;
}

}  // namespace nmt::kernels
""",
    "cuda/kernels/relu.cu": """#include "cuda/kernels/elementwise.h"
#include "kernels/relu.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void relu_forward(const Cuda& cuda, std::int64_t n, const float* x, float* y) {
  each(cuda, n, [=] __device__(std::int64_t i) { y[i] = x[i] < 0.0f ? 0.0f : x[i]; });
}

void relu_backward(const Cuda& cuda, std::int64_t n, const float* y, const float* dy, float* dx) {
  each(cuda, n, [=] __device__(std::int64_t i) { dx[i] += y[i] > 0.0f ? dy[i] : 0.0f; });
}

}  // namespace nmt::kernels
""",
    "src/autograd/relu.cpp": """#include "kernels/relu.h"

#include "autograd/ops/plain.h"

namespace nmt::ops {

Var relu(Tape& tape, Var x) {
  Tensor y = tape.reuse(x);
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::relu_forward(backend, y.elements(), x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out] {
    if (!out->gradient || !x->wants_gradient) return;
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::relu_backward(backend, out->value.elements(), out->value.f32(), out->gradient.f32(),
                             tape.gradient(*x));
    });
  });
  return out;
}

}  // namespace nmt::ops
""",
}
RELU_CHECK = """void check_relu(Engine& engine) {
  Tape tape(engine.context, true);
  Tensor input = engine.random({7, 9});  // no number near the kink at 0
  for (std::int64_t i = 0; i < 63; ++i) input.f32()[i] += input.f32()[i] < 0 ? -0.1f : 0.1f;
  const Var x = tape.result(input);
  const Var y = ops::relu(tape, x);
  Row xs = doubles(x->value);
  GradientCheck check(engine, {one_rounding, 1});
  check.reads("x", xs, x);
  check.gives("y", y);
  check.run(tape, [&] {
    Row out;
    for (const double v : xs) out.push_back(std::max(v, 0.0));
    return out;
  });
}

"""
RELU_PARITY = """void check_relu_forward(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto x = p.floats(n), y = p.floats(n);
    p.run([&](const auto& on) { relu_forward(on, n, x(on), y(on)); }, 0);
  });
}

void check_relu_backward(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto y = p.floats(n), dy = p.floats(n), dx = p.floats(n);
    p.run([&](const auto& on) { relu_backward(on, n, y(on), dy(on), dx(on)); }, 0);
  });
}

"""
RELU_PARITY_ROWS = """      {"relu_forward", check_relu_forward},
      {"relu_backward", check_relu_backward},
"""


class Copy:
    """A copy of the tree that records what is added to it."""

    def __init__(self, folder):
        self.root, self.build = folder, folder / "build"
        self.added = []
        for name in project_files(ROOT):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)

    def create(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")
        self.added.append((name, "new file", text.count("\n")))

    def edit(self, name, anchor, replacement, where="before"):
        """Inserts before or after the first occurrence of the anchor, or in its place."""
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        if anchor not in text:
            sys.exit(f"{name}: '{anchor}' is not there any more: change count_places.py")
        new = {"before": replacement + anchor, "after": anchor + replacement,
               "instead": replacement}[where]
        path.write_text(text.replace(anchor, new, 1), encoding="utf-8")
        self.added.append((name, "edit", max(1, replacement.strip("\n").count("\n") + 1)))

    def run(self, *command, text=None):
        done = subprocess.run(list(map(str, command)), cwd=self.root, capture_output=True,
                              text=True, input=text)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n"
                     f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout + done.stderr

    def program(self, name, *arguments, text=None):
        return self.run(self.build / "bin" / name, *arguments, text=text)

    def train(self, model, *options):
        every = [o for key in ("--valid-freq", "--save-freq", "--after") for o in (key, "4u")]
        self.program("nmt-train", "toy/train.en", "toy/train.de", "--valid-sets", "toy/valid.en",
                     "toy/valid.de", "--model", model, "--dim-vocabs", "100", "--dim-emb", "8",
                     "--dim-rnn", "8", "--enc-depth", "1", "--mini-batch-words", "100",
                     "--valid-metrics", "cross-entropy", "--cpu-threads", "1", "--products", "own",
                     *every, *options)
        return (self.root / model / "latest" / "model.safetensors").read_bytes()


def expect(condition, what):
    if not condition:
        sys.exit(f"not so: {what}")


def add_unit(copy):
    copy.create("src/units/trial.h", TRIAL)
    copy.edit("src/units/units.def", 'NMT_UNIT("rnn"', 'NMT_UNIT("trial", "", Trial)\n')


def use_unit(copy):
    expect("trial" in copy.program("nmt-train", "--help"), "--help names the unit")
    copy.train("unit.model", "--dec-depth", "1", "--unit", "trial")
    copy.program("nmt-translate", "--model", "unit.model", text="The man sees a lamp.\n")
    expect("trial" in copy.program("nmt-info", "unit.model"), "nmt-info names the unit")
    out = copy.program("autograd_tests", "--gtest_filter=*trial*")
    expect("[  PASSED  ] 0 tests" not in out, "the op table checks the unit's gradients")


def add_matrix_unit(copy):
    gla = (copy.root / "src/units/matrix/gla.h").read_text()
    copy.create("src/units/matrix/attempt.h",
                gla.replace("Gla", "Attempt").replace("1.0 / 16", "1.0 / 8"))
    copy.edit("src/units/units.def", 'NMT_MATRIX_STATE_UNIT("gla"',
              'NMT_MATRIX_STATE_UNIT("attempt", "", Attempt)\n')


def use_matrix_unit(copy):
    expect("attempt" in copy.program("nmt-train", "--help"), "--help names the unit")
    copy.train("matrix_unit.model", "--dec-depth", "1", "--unit", "attempt")
    copy.program("nmt-translate", "--model", "matrix_unit.model", text="The man sees a lamp.\n")
    expect("attempt" in copy.program("nmt-info", "matrix_unit.model"), "nmt-info names the unit")
    out = copy.program("autograd_tests", "--gtest_filter=*attempt*")
    expect("[  PASSED  ] 0 tests" not in out, "the op table checks the unit's gradients")
    copy.program("kernels_tests", "--gtest_filter=MatrixUnits.*:Units.*")


def add_op(copy):
    for name, text in RELU.items():
        copy.create(name, text)
    copy.edit("src/autograd/ops/plain.h", "Var tanh(Tape& tape, Var x);\n",
              "Var relu(Tape& tape, Var x);\n", "after")
    copy.edit("tests/autograd/plain_op_rows.cpp", "void check_tanh(", RELU_CHECK)
    copy.edit("tests/autograd/plain_op_rows.cpp", '      {"tanh", "", check_tanh},\n',
              '      {"relu", "", check_relu},\n')
    copy.edit("tests/cuda/pointwise.cpp", '#include "kernels/pointwise.h"\n',
              '#include "kernels/relu.h"\n', "after")
    copy.edit("tests/cuda/pointwise.cpp", "void check_tanh_forward(", RELU_PARITY)
    copy.edit("tests/cuda/pointwise.cpp", '      {"tanh_forward"', RELU_PARITY_ROWS)


def use_op(copy):
    out = copy.program("autograd_tests", "--gtest_filter=*relu*:OpTable*")
    expect("[  PASSED  ] 2 tests" in out, "the op table checks the op")
    copy.run(sys.executable, "tests/tree/check_kernels.py", copy.root)


def add_option(copy):
    copy.edit("src/config/specs.h", "  int optimizer_delay = 1;",
              "  int extra_batches = 0;  ///< batches in each update beside optimizer_delay\n")
    path = copy.root / "src/config/train_fields.cpp"
    option = re.search(r'Option\("optimizer-delay", &s\.optimizer_delay,', path.read_text())
    copy.edit("src/config/train_fields.cpp", option[0] if option else "no such option",
              option_line(copy))
    copy.edit("src/train/trainer.cpp", "i < spec_.optimizer_delay;",
              "i < spec_.optimizer_delay + spec_.extra_batches;", "instead")


def option_line(copy):
    """The declaration, with the role of its neighbor where options have roles."""
    text = (copy.root / "src/config/train_fields.cpp").read_text()
    neighbor = re.search(r'Option\("optimizer-delay".*?(?=Option\(|\}\))', text, re.S)
    role = re.search(r"\.(?:role|as|of)\((?:Role::)?\w+\)", neighbor[0]) if neighbor else None
    return ('Option("extra-batches", &s.extra_batches, "more batches in each update").range(0, 9)'
            + (role[0] if role else "") + ",\n")


def use_option(copy):
    expect("--extra-batches" in copy.program("nmt-train", "--help"), "--help has the option")
    both = [copy.train(f"option.{side}.model", "--dec-depth", "1", *options) for side, options in
            (("a", ["--extra-batches", "1"]), ("b", ["--optimizer-delay", "2"]), ("c", []))]
    expect(both[0] == both[1] != both[2], "the option has its effect")
    expect("extra-batches: 1" in (copy.root / "option.a.model/latest/state.json").read_text(),
           "the model remembers the option")


def add_architecture(copy):
    table = next((copy.root / "src").rglob("architectures.def")).relative_to(copy.root)
    copy.edit(str(table), "NMT_ARCHITECTURE(gnmt,",
              'NMT_ARCHITECTURE(trial, "stacked layers with residual sums and a readout", '
              '"no paper",'
              ' .decoder_layers = {2, max_layers}, .residual = ResidualKind::sum)\n')


def use_architecture(copy):
    expect("trial" in copy.program("nmt-train", "--help"), "--help has the architecture")
    copy.train("architecture.model", "--type", "trial", "--dec-depth", "2")
    copy.program("nmt-translate", "--model", "architecture.model", text="The man sees a lamp.\n")
    expect("trial" in copy.program("nmt-info", "architecture.model"), "nmt-info names it")


def add_program(copy):
    text = (copy.root / "tools/nmt-score.cpp").read_text().replace("nmt-score", "nmt-trial")
    copy.create("tools/nmt-trial.cpp", text)


def use_program(copy):
    expect("Usage: nmt-trial" in copy.program("nmt-trial", "--help"), "the program runs")


ADDITIONS = {"unit": (add_unit, use_unit), "matrix-unit": (add_matrix_unit, use_matrix_unit),
             "op": (add_op, use_op), "option": (add_option, use_option),
             "architecture": (add_architecture, use_architecture),
             "program": (add_program, use_program)}


def additions(text):
    unknown = [name for name in text.split(",") if name not in ADDITIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(ADDITIONS)}")
    return {name: ADDITIONS[name] for name in text.split(",")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scratch", type=checks.new_folder, help="new folder for the copy")
    parser.add_argument("--only", type=additions, default=",".join(ADDITIONS),
                        help="what to add, with commas (%(default)s)")
    parser.add_argument("--no-build", action="store_true", help="add and count alone")
    arguments = parser.parse_args()
    if arguments.scratch and arguments.scratch.exists() and any(arguments.scratch.iterdir()):
        parser.error(f"--scratch: {arguments.scratch} is not empty")
    chosen = arguments.only
    folder = arguments.scratch or pathlib.Path(tempfile.mkdtemp(prefix="nmt-places-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        copy, counts = Copy(folder), {}
        for name, (add, _) in chosen.items():
            copy.added = []
            add(copy)
            counts[name] = copy.added
        if not arguments.no_build:
            copy.run(sys.executable, "scripts/data/make_toy_corpus.py", "--pairs", "200", "--valid",
                     "20", "--test", "1", "toy")
            copy.run("cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DNMT_WITH_CUDA=OFF",
                     "-DNMT_ISA_LEVELS=x86-64-v3", "-DCMAKE_BUILD_TYPE=Debug",
                     "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g0")
            targets = ["nmt-train", "nmt-info", "nmt-translate"]
            targets += ["nmt-trial"] if "program" in chosen else []
            targets += ["autograd_tests"] if {"unit", "matrix-unit", "op"} & set(chosen) else []
            targets += ["kernels_tests"] if "matrix-unit" in chosen else []
            copy.run("cmake", "--build", "build", "-j2", "--target", *targets)
            for _, use in chosen.values():
                use(copy)
        for name, added in counts.items():
            print(f"{name}: {len(added)} places in {len({file for file, _, _ in added})} files")
            for file, kind, lines in added:
                print(f"  {file}: {kind}, {lines} line{'s' if lines > 1 else ''}")
    finally:
        if not arguments.scratch:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    checks.call(main)
