import subprocess
import sys

import numpy as np
import pytest

import nmt
from conftest import TRAINING, program


def files(corpus):
    return [corpus / "train.en", corpus / "train.de"]


def words(options):
    return [word for name, value in options.items()
            for word in ("--" + name.replace("_", "-"), str(value))]


def weights(model, update):
    return (model / "checkpoints" / str(update) / "model.safetensors").read_bytes()


def test_training_is_that_of_the_program(corpus, model, tmp_path):
    program("nmt-train", *files(corpus), "--model", tmp_path / "model", "--after", "60u", "--quiet",
            *words(TRAINING))
    assert weights(tmp_path / "model", 60) == weights(model, 60)


def test_callbacks_report_and_stop(corpus, model, tmp_path):
    seen, validations = [], []

    def progress(now):
        seen.append(now.updates)
        return now.updates < 30

    def train(**callbacks):
        return nmt.train(train_sets=files(corpus), model=tmp_path / "model", after="60u",
                         **TRAINING, **callbacks)

    stopped = train(progress=progress)
    assert not stopped.finished and stopped.updates == 30 and seen == [10, 20, 30]
    resumed = train(validation=lambda now: validations.append(now.metrics))
    assert resumed.finished and resumed.updates == 60
    assert resumed.best_metric == "bleu" and "bleu" in validations[-1]
    assert weights(tmp_path / "model", 60) == weights(model, 60)


def test_values_of_numpy(corpus, model, tmp_path):
    options = {name: np.array([value])[0] for name, value in TRAINING.items()}
    nmt.train(train_sets=np.array(files(corpus)).astype(str), vocabs=np.array([]),
              model=np.str_(tmp_path / "model"), after="60u",
              **{**options, "dim_vocabs": np.array([TRAINING["dim_vocabs"]])})
    assert weights(tmp_path / "model", 60) == weights(model, 60)


SCRIPT = """
import os, signal, sys, threading, nmt
def progress(now):
    if now.updates == 20 and sys.argv[5] == "in a callback":
        os.kill(os.getpid(), signal.SIGINT)
    if now.updates == 20 and sys.argv[5] == "between updates":
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    nmt.train(train_sets=sys.argv[1:3], model=sys.argv[3], after="100000u", progress=progress,
              **eval(sys.argv[4]))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("when", ["in a callback", "between updates"])
def test_ctrl_c_saves(corpus, tmp_path, when):
    done = subprocess.run([sys.executable, "-c", SCRIPT, *files(corpus), tmp_path / "model",
                           repr(TRAINING), when], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr
    saved = [int(path.name) for path in (tmp_path / "model" / "checkpoints").iterdir()]
    assert 20 <= max(saved) < 5000
    assert nmt.Translator(tmp_path / "model").translate_batch(["the dog"])[0].hypotheses


def test_errors(corpus, tmp_path):
    with pytest.raises(nmt.UsageError, match="unti"):
        nmt.train(train_sets=files(corpus), model=tmp_path / "model", unti="gru")
    with pytest.raises(nmt.UsageError, match="missing"):
        nmt.train(train_sets=["missing.en", "missing.de"], model=tmp_path / "model")
    for name in ("progress", "validation"):
        with pytest.raises(TypeError, match=f"{name}: int; expected a function"):
            nmt.train(train_sets=files(corpus), model=tmp_path / "model", **{name: 5})
    for options, message in (
            ({"model": ["a", "b"]}, r"model=\['a', 'b'\]; expected a str or os.PathLike"),
            ({"model": 5}, "model=5; expected a str or os.PathLike"),
            ({"model": ""}, "model: no directory"),
            ({"train_sets": 5}, "train_sets=5; expected a path or a list of paths"),
            ({"train_sets": {"a", "b"}}, "train_sets={.*; expected a path or a list of paths"),
            ({"train_sets": [b"a", "b"]}, "train_sets=b'a'; expected a str or os.PathLike"),
            ({"valid_sets": [["a", "b"]]}, "valid_sets=.*; expected a str or os.PathLike"),
            ({"vocabs": "a\0"}, "vocabs=.*; expected a str or os.PathLike without NUL"),
            ({"unit": ["gru", "lstm"]}, r"unit=\['gru', 'lstm'\]; expected a single value"),
            ({"unit": b"gru"}, "unit=b'gru'; expected text"),
            ({"guided_alignment": ["a", "b"]}, "guided_alignment=.*; expected a single value"),
            ({"valid_metrics": []}, "valid_metrics: a list cannot be empty")):
        with pytest.raises(nmt.UsageError, match=f"^{message}"):
            nmt.train(**{"train_sets": files(corpus), "model": tmp_path / "model", **options})
    with pytest.raises(ZeroDivisionError):
        nmt.train(train_sets=files(corpus), model=tmp_path / "model", after="20u",
                  progress=lambda now: 1 / 0, **TRAINING)
