#!/usr/bin/env python3
"""The table of training of scripts/bench/rivals/compare_marian.py, with programs that stand for
both sides. Usage: test_compare_marian.py BIN_DIR"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB = """#!/bin/sh
case "$*" in
*--pieces*) printf '    0 </s>\\n    1 <unk>\\n    2 a\\n' ;;
*) cat ;;
esac
"""
# One update has 10 labels, five have 50 and take longer.
TRAIN = """#!/bin/sh
model= updates=
while [ $# -gt 0 ]; do
  case $1 in --model) model=$2 ;; --after) updates=${2%u} ;; esac
  shift
done
mkdir -p "$model"
echo "{\\"event\\":\\"display\\",\\"labels\\":$((updates * 10))}" > "$model/train.jsonl"
sleep 0.$updates
"""
# One update has 30 labels, five have 150.
MARIAN = """#!/bin/sh
updates=
while [ $# -gt 0 ]; do
  case $1 in --after-batches) updates=$2 ;; esac
  shift
done
echo "[training] Cost 9.1 * $((updates * 30)) @ 3" >&2
sleep 0.$updates
"""
MODEL = {"type": "deep", "enc-cell": "gru", "dec-cell": "gru", "context-aware": False, "groups": 1,
         "tied-embeddings-all": True,
         "dim-emb": 8, "dim-rnn": 8, "enc-depth": 1, "dec-depth": 1, "layer-normalization": True}


class CompareMarian(unittest.TestCase):
    def test_the_table_shows_the_batches_of_both_sides(self):
        with tempfile.TemporaryDirectory(prefix="nmt-marian-test-") as name:
            folder = pathlib.Path(name)
            texts = {"bin/nmt-vocab": VOCAB, "bin/nmt-train": TRAIN, "bin/nmt-translate": "",
                     "marian/marian": MARIAN, "marian/marian-conv": "",
                     "marian/marian-decoder": "#!/bin/sh\necho v1.12\n", "model/vocab.spm": "",
                     "a": "a a\n",
                     "model/config.json": json.dumps({"model": MODEL, "precision": "float32"})}
            for path, text in texts.items():
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_text(text)
                (folder / path).chmod(0o755)
            command = ["marian", "model", "a", "--train", "a", "a", "--updates", "5",
                       "--rounds", "1", "--threads", "2"]
            done = subprocess.run([sys.executable, ROOT / "scripts/bench/rivals/compare_marian.py",
                                   *command], capture_output=True, text=True, timeout=120,
                                  cwd=folder, env={**os.environ, "NMT_BUILD": str(folder)})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = [[cell.strip() for cell in line.split("|")[1:-1]]
                    for line in done.stdout.splitlines() if line.startswith("|")]
            self.assertEqual(rows[0], ["side", "target tokens/s of training", "ratio",
                                       "target tokens per update"])
            self.assertEqual([(row[0], row[3]) for row in rows[2:]],
                             [("nmt-train", "10"), ("marian", "30")])
            self.assertEqual(rows[3][2], "1.00")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
