"""What the tests of nmt-train share: a toy corpus, a small model, and a test case that
trains on it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                   else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["--dim-emb", "16", "--dim-rnn", "16", "--enc-depth", "1", "--dec-depth", "1",
         "--dim-vocabs", "200", "--mini-batch-words", "200",
         "--cpu-threads", "2", "--disp-freq", "10u", "--valid-freq", "10u", "--save-freq", "10u",
         "--valid-max-sentences", "20", "--early-stopping", "0", "--exponential-smoothing", "0.01"]


def run(*args, status=0, tool="nmt-train", stdin=None):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, text=True,
                          timeout=300, input=stdin)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{tool} {' '.join(map(str, args))}: status {done.returncode}, "
                             f"not {status}\n{done.stdout}{done.stderr}")
    return done


def make_corpus(folder, pairs=300, seed=1):
    subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", str(pairs),
                    "--valid", "60", "--test", "10", "--seed", str(seed), folder], check=True)
    return folder / "train.en", folder / "train.de"


def weights(model):
    return (model / "latest" / "model.safetensors").read_bytes()


def events(model, kind):
    lines = (model / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == kind]


def change_state(model, change):
    """change(state) on the state of the newest checkpoint."""
    checkpoint = model / "latest"
    state, manifest = (json.loads((checkpoint / name).read_text(encoding="utf-8"))
                       for name in ("state.json", "manifest.json"))
    change(state)
    text = json.dumps(state)
    (checkpoint / "state.json").write_text(text, encoding="utf-8")
    manifest["files"]["state.json"] = {"bytes": len(text.encode()),
                                       "crc32": zlib.crc32(text.encode())}
    (checkpoint / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


class TrainingCase(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nmt-train-test-"))
        self.en, self.de = make_corpus(self.dir)

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def train(self, name, *more, status=0):
        return run(self.en, self.de, "--model", self.dir / name, *SMALL, *more, status=status)

    def start(self, name, *more):
        return subprocess.Popen([BIN / "nmt-train", self.en, self.de, "--model", self.dir / name,
                                 *SMALL, *more], stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True)

    @staticmethod
    def wait_for(process, text):
        for line in process.stderr:
            if text in line:
                return
        raise AssertionError(f"the program ended before '{text}'")

    def dir_in(self, name):
        (self.dir / name).mkdir()
        return self.dir / name
