#!/usr/bin/env bash
# Scores translations with sacreBLEU in the virtual environment .venv, which is created on demand.
# The arguments are those of sacreBLEU, which nmt-bleu shares:
#   scripts/bench/quality/score.sh ref.de -i mine.de -m bleu chrf
#   score.sh --python prints the path of a Python with sacreBLEU and rouge-score
set -euo pipefail
. "$(dirname "$0")/../../dev/environment.sh"
need_packages numpy,rouge_score,sacrebleu sacrebleu==2.6.0 rouge-score==0.1.2 'numpy>=2'
if [ "${1:-}" = --python ]; then
  echo "$python"
  exit 0
fi
exec "$python" -m sacrebleu "$@"
