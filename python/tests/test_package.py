import inspect
import pathlib
import runpy
import subprocess
import sys

import nmt
from conftest import ROOT


def test_names_and_types():
    for name in nmt.__all__:
        assert getattr(nmt, name) is not None
        assert inspect.getdoc(getattr(nmt, name)), name
    folder = pathlib.Path(nmt.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "_nmt.pyi").read_text()
    for name in ("Translator", "Scorer", "Vocabulary", "TrainProgress"):
        assert f"class {name}" in stub
    assert "numpy" in stub


def test_types(tmp_path):
    for checked in ("-p", "nmt"), (ROOT / "python/tests/typed.py",):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path,
                               *checked], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_version():
    header = (ROOT / "include/nmt/version.h").read_text()
    for part, number in zip(("MAJOR", "MINOR", "PATCH"), nmt.__version__.split(".")):
        assert f"NMT_VERSION_{part} {number}\n" in header


def test_example(corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train_and_translate.py", str(corpus / "train.en"),
                                      str(corpus / "train.de"), str(tmp_path / "model"), "20u"])
    runpy.run_path(str(ROOT / "examples/python/train_and_translate.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "loss" in printed and "BLEU|nrefs:1" in printed
