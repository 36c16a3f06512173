"""A small model, trained once, and the programs to compare with."""
import os
import pathlib
import subprocess
import sys

import pytest

import nmt

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINING = dict(unit="gru", dim_vocabs=400, dim_emb=48, dim_rnn=48, enc_depth=1, dec_depth=1,
                mini_batch_words=800, disp_freq="10u", lr_warmup="20u", valid_lines=50)


def program(name, *arguments, stdin=""):
    """The output of a program of the same build."""
    words = [str(pathlib.Path(os.environ["NMT_BIN"]) / name), *map(str, arguments)]
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "600",
                    "--seed", "5", folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def model(corpus):
    result = nmt.train(train_sets=[corpus / "train.en", corpus / "train.de"],
                       model=corpus / "model", after="60u", **TRAINING)
    assert result.finished and result.updates == 60
    return corpus / "model"


@pytest.fixture(scope="session")
def translator(model):
    return nmt.Translator(model)


@pytest.fixture(scope="session")
def lines(corpus):
    return [*(corpus / "test.en").read_text().splitlines()[:60], "", "  "]


def texts(results):
    return [result.hypotheses[0] for result in results]
