#!/usr/bin/env python3
"""Compares units with their authors' code, where PyPI has a package of it that runs on a CPU.

    scripts/bench/quality/compare_authors.py

Each unit reads random inputs of 40 steps in its authors' code, and in the numpy programs that the
unit's tests compare it with (tests/nn/unit_examples.py, tests/model/test_block.py). Prints the
largest difference of the outputs, relative to the largest output; exits 1 where it exceeds 1e-5,
since most of these packages compute in float32.

The packages are unpacked under --work, not installed: most of them import GPU libraries
that their plain functions do not need. PyTorch, numpy, einops and jaxtyping are installed
in .venv if they are missing."""
import argparse
import importlib
import importlib.util
import pathlib
import subprocess
import sys
import tarfile
import types
import warnings
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts/bench"))
from common import arguments  # noqa: E402
from common.system import ensure_packages  # noqa: E402

T, WIDTH, HEADS, K = 40, 6, 2, 3
SIZE = WIDTH // HEADS


class Packages:
    def __init__(self, work):
        self.work = work
        work.mkdir(parents=True, exist_ok=True)

    def folder(self, name, version, is_source):
        """The unpacked package. `is_source`: there is no wheel."""
        out = self.work / "unpacked" / f"{name}-{version}"
        if not out.exists():
            how = ["--no-binary", ":all:", "--no-build-isolation"] if is_source else []
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *how,
                            "--dest", self.work, f"{name}=={version}"], check=True)
            file = next(self.work.glob(f"{name.replace('-', '_')}-{version}*"))
            with tarfile.open(file) if is_source else zipfile.ZipFile(file) as archive:
                archive.extractall(out)
        return out


def load(path, name):
    """A module of one file, without the package around it."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name, **members):
    """A module that a file imports and its plain functions do not use."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []
    sys.modules[name] = module


def package(name, folder):
    """A package whose own __init__.py, which imports too much, does not run."""
    stand_in(name)
    sys.modules[name].__path__ = [str(folder / name.replace(".", "/"))]


class Programs:
    """The numpy programs, and random numbers."""

    def __init__(self):
        import numpy as np
        arguments, sys.argv = sys.argv, ["test_block.py"]
        self.examples = load(ROOT / "tests/nn/unit_examples.py", "unit_examples")
        self.blocks = load(ROOT / "tests/model/test_block.py", "test_block")
        sys.argv = arguments
        self.blocks.K = K
        self.generator = np.random.default_rng(1)

    def draw(self, *shape):
        return self.generator.normal(size=shape) * 0.7

    def weights(self, inputs, recurrents, width=5):
        """Of a unit with so many matrices over the input and over the state."""
        return types.SimpleNamespace(W=[self.draw(width, WIDTH) for _ in range(inputs)],
                                     U=[self.draw(WIDTH, WIDTH) for _ in range(recurrents)],
                                     b=[self.draw(WIDTH) for _ in range(inputs)],
                                     v=[self.draw(WIDTH) for _ in range(2)])

    def states(self, name, x, weights):
        """h [T,WIDTH] of a unit of unit_examples.py."""
        import numpy as np
        h, c, out = np.zeros(WIDTH), np.zeros(WIDTH), []
        for t in range(T):
            h, c = getattr(self.examples, name)(h, c, x[t], weights, t)
            out.append(h)
        return np.stack(out)

    def outputs(self, name, planes, scalars, channels, vectors=None, rows=None):
        """h [T,HEADS,SIZE] of a matrix-state unit of test_block.py: planes [T,HEADS,n,K], scalars
        [T,HEADS,m], channels [T,p,HEADS,SIZE], vectors [v,WIDTH], rows [K,WIDTH]."""
        import numpy as np
        vectors = np.zeros((0, WIDTH)) if vectors is None else vectors
        rows = np.zeros((K, WIDTH)) if rows is None else rows
        out = np.zeros((T, HEADS, SIZE))
        for head in range(HEADS):
            s, n, own = np.zeros((SIZE, K)), np.zeros(K), slice(head * SIZE, (head + 1) * SIZE)
            for t in range(T):
                s, n, out[t, head] = getattr(self.blocks,
                                             name)(s, n, planes[t, head], scalars[t, head],
                                                   channels[t, :, head], vectors[:, own],
                                                   rows[:, own])
        return out


def tensor(array):
    import torch
    return torch.tensor(array)


# The authors of each package: rows of unit, function, our outputs and theirs.


def xlstm(folder, numpy):
    import numpy as np
    import torch
    cell = load(folder / "xlstm/blocks/slstm/src/vanilla/slstm.py", "their_slstm")
    x, w = numpy.draw(T, 5), numpy.weights(4, 4)
    states, theirs = torch.zeros(4, 1, WIDTH, dtype=torch.float64), []
    for t in range(T):
        read = np.concatenate([x[t] @ matrix for matrix in w.W])
        recurrent = np.concatenate([states[0, 0].numpy() @ matrix for matrix in w.U])
        states, _ = cell.slstm_forward_pointwise(tensor(read)[None], tensor(recurrent)[None],
                                                 tensor(np.concatenate(w.b))[None], states, {})
        theirs.append(states[0, 0].numpy())
    yield "slstm", "slstm_forward_pointwise", numpy.states("slstm", x, w), np.stack(theirs)

    parallel = load(folder / "xlstm/blocks/mlstm/backends.py",
                    "their_mlstm").parallel_stabilized_simple
    planes, scalars, channels = (numpy.draw(T, HEADS, 2, K), numpy.draw(T, HEADS, 2),
                                 numpy.draw(T, 2, HEADS, SIZE))
    channels[:, 1] = 100  # an open output gate; the function has none
    parts = planes[:, :, 0], planes[:, :, 1], channels[:, 0], scalars[..., :1], scalars[..., 1:]
    theirs = parallel(*(tensor(part).transpose(0, 1)[None] for part in parts))  # [1,HEADS,T,n]
    yield ("mlstm", "parallel_stabilized_simple", numpy.outputs("mlstm", planes, scalars, channels),
           theirs[0].transpose(0, 1).numpy())


def recurrentgemma(folder, numpy):
    import numpy as np
    import torch
    package("recurrentgemma", folder)
    package("recurrentgemma.torch", folder)
    unit = importlib.import_module("recurrentgemma.torch.layers").RGLRU(WIDTH, 1).double()
    x, w = numpy.draw(T, WIDTH), numpy.weights(3, 0, WIDTH)
    # the projection of the input is not part of their unit
    w.W[2], w.b[2] = np.eye(WIDTH), np.zeros(WIDTH)
    with torch.no_grad():
        for gate, k in ((unit.a_gate, 0), (unit.input_gate, 1)):
            gate.w.copy_(tensor(w.W[k])[None])
            gate.b.copy_(tensor(w.b[k])[None])
        unit.a_param.copy_(tensor(w.v[0]))
        # They leave out the factor sqrt(1 - a^2) at position 0, so positions begin with 1, after a
        # state of zeros.
        theirs, _ = unit(tensor(x)[None], torch.arange(1, T + 1)[None], torch.zeros(1, WIDTH))
    yield "rglru", "RGLRU", numpy.states("rglru", x, w), theirs[0].numpy()


def fla_core(folder, numpy):
    import numpy as np
    import torch
    from torch.nn import functional
    gla, delta, hgrn = (load(folder / f"fla/ops/{name}/naive.py", f"their_{name}")
                        for name in ("gla", "gated_delta_rule", "hgrn"))
    channels, none = numpy.draw(T, 1, HEADS, SIZE), np.zeros((T, HEADS, 0))
    v = tensor(channels[:, 0])[None]

    planes = numpy.draw(T, HEADS, 3, K)
    q, k, a = (tensor(planes[:, :, part])[None] for part in range(3))
    theirs, _ = gla.naive_recurrent_gla(q * K ** 0.5, k, v, functional.logsigmoid(a) / 16)
    yield ("gla", "naive_recurrent_gla", numpy.outputs("gla", planes, none, channels),
           theirs[0].numpy())

    planes = numpy.draw(T, HEADS, 2, K)
    q, f = (tensor(planes[:, :, part])[None] for part in range(2))
    theirs, _ = gla.naive_recurrent_gla(q * K ** 0.5, 1 - torch.sigmoid(f), v,
                                        functional.logsigmoid(f))
    yield ("hgrn2", "naive_recurrent_gla", numpy.outputs("hgrn2", planes, none, channels),
           theirs[0].numpy())

    planes, scalars = numpy.draw(T, HEADS, 2, K), numpy.draw(T, HEADS, 2)
    q, k = (functional.normalize(tensor(planes[:, :, part])[None], dim=-1) for part in range(2))
    alpha, beta = (tensor(scalars[..., part])[None] for part in range(2))
    theirs, _ = delta.naive_recurrent_gated_delta_rule(q, k, v, torch.sigmoid(beta),
                                                       functional.logsigmoid(alpha), scale=1)
    yield ("gdn", "naive_recurrent_gated_delta_rule",
           numpy.outputs("gdn", planes, scalars, channels), theirs[0].numpy())

    x, w = numpy.draw(T, 5), numpy.weights(2, 0)
    bound, forget, read = (torch.sigmoid(tensor(w.v[0])), tensor(x @ w.W[0] + w.b[0]),
                           tensor(x @ w.W[1] + w.b[1]))
    gate = bound + (1 - bound) * torch.sigmoid(forget)
    theirs, _ = hgrn.naive_recurrent_hgrn((functional.silu(read) * (1 - gate))[None],
                                          torch.log(gate)[None])
    yield "hgrn", "naive_recurrent_hgrn", numpy.states("hgrn", x, w), theirs[0].numpy()


def sru(folder, numpy):
    import numpy as np
    import torch
    from torch.utils import cpp_extension
    package("sru", folder)
    stand_in("sru.cuda_functional", elementwise_recurrence_forward=None)
    # The import compiles a kernel for CPUs, which the function in Python does not use.
    kept, cpp_extension.load, torch.jit.script = ((cpp_extension.load, torch.jit.script),
                                                  lambda *_, **__: None, lambda function: function)
    ops = importlib.import_module("sru.ops")
    cpp_extension.load, torch.jit.script = kept
    x, w = numpy.draw(T, 5), numpy.weights(4, 0)
    # candidate, forget gate, reset gate, highway
    read = np.stack([x @ w.W[k] for k in (1, 0, 2, 3)], -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, _ = ops.elementwise_recurrence_naive(
            tensor(read.reshape(T, 1, -1)), tensor(x)[:, None], tensor(np.concatenate(w.v)),
            torch.zeros(2 * WIDTH, dtype=torch.float64), None, 0, WIDTH, False, True)
    yield "sru", "elementwise_recurrence_naive", numpy.states("sru", x, w), theirs[:, 0].numpy()


def mamba_ssm(folder, numpy):
    import numpy as np
    import torch
    stand_in("selective_scan_cuda")
    for name in ("mamba_ssm", "mamba_ssm.utils", "mamba_ssm.ops", "mamba_ssm.ops.triton"):
        stand_in(name)
    stand_in("mamba_ssm.utils.torch", custom_bwd=lambda function: function,
             custom_fwd=lambda function: function)
    stand_in("mamba_ssm.ops.triton.layer_norm", _layer_norm_fwd=None)
    scan = load(next(folder.glob("*/mamba_ssm/ops/selective_scan_interface.py")),
                "their_mamba").selective_scan_ref
    planes, channels, vectors, rows = (numpy.draw(T, HEADS, 2, K), numpy.draw(T, 2, HEADS, SIZE),
                                       numpy.draw(2, WIDTH), numpy.draw(K, WIDTH))
    ours = numpy.outputs("mamba", planes, np.zeros((T, HEADS, 0)), channels, vectors, rows)
    # [1,WIDTH,T]
    u, delta = (tensor(channels[:, part].reshape(T, WIDTH)).T[None] for part in range(2))
    b, c = (tensor(planes[:, :, part]).permute(1, 2, 0)[None] for part in range(2))  # [1,HEADS,K,T]
    theirs = scan(u, delta, -torch.exp(tensor(rows.T)).float(), b, c, D=tensor(vectors[0]),
                  delta_bias=tensor(vectors[1]), delta_softplus=True)
    yield "mamba", "selective_scan_ref", ours.reshape(T, WIDTH), theirs[0].T.numpy()


# True: a source package, which has no wheel
PACKAGES = [("xlstm", "2.0.6", xlstm, False), ("recurrentgemma", "1.0.1", recurrentgemma, False),
            ("fla-core", "0.6.0", fla_core, False),
            ("sru", "2.6.0", sru, False), ("mamba-ssm", "2.3.2.post1", mamba_ssm, True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=arguments.new_folder, default=ROOT / "build/authors",
                        help="folder for the packages (%(default)s)")
    args = parser.parse_args()
    ensure_packages("torch", "numpy", "einops", "jaxtyping")
    import numpy as np
    packages, numpy, failed = Packages(args.work), Programs(), False
    print("| unit | package | function | largest difference |\n|---|---|---|---|")
    for name, version, compare, is_source in PACKAGES:
        folder = packages.folder(name, version, is_source)
        for unit, function, ours, theirs in compare(folder, numpy):
            assert ours.shape == theirs.shape, (unit, ours.shape, theirs.shape)
            difference = np.abs(ours - theirs).max() / np.abs(ours).max()
            print(f"| {unit} | {name} {version} | `{function}` | {difference:.1e} |", flush=True)
            failed |= not difference < 1e-5
    return failed


if __name__ == "__main__":
    arguments.call(main)
