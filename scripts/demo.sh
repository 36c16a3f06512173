#!/usr/bin/env bash
# Installs dependencies on Debian 12, builds, gets English-German data, trains for a few minutes,
# translates the test set, and prints BLEU and ten sentences. Results are in demo/; a second call
# resumes and trains up to the same total time.
# Usage: scripts/demo.sh [OPTIONS OF nmt-train], for example --max-minutes 20
set -euo pipefail
unset CDPATH
case ${1:-} in -h | --help) sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" && exit ;; esac
cd "$(dirname "$0")/.."
for word; do
  case $word in
    --model | --model=* | -m* | --train-sets* | --valid-sets* | --src* | --tgt* | --trg* | -t*)
      echo "demo.sh: $word: the demo has its own text, and its model is demo/model" >&2
      exit 2
      ;;
  esac
done

step() { echo "== $1"; }

step "installing what is missing"
scripts/setup.sh

step "building"
cmake --preset release >/dev/null
cmake --build --preset release -j "$(nproc)" --target nmt-train nmt-translate nmt-bleu

step "getting text"
data=demo/data
scripts/data/get_data.sh "$data"

step "training on $(cat "$data/SOURCE")"
build/bin/nmt-train --config configs/demo.yaml --train-sets "$data/train.en" "$data/train.de" \
  --valid-sets "$data/valid.en" "$data/valid.de" --model demo/model "$@"

step "translating $(wc -l <"$data/test.en") sentences of the test set"
build/bin/nmt-translate -m demo/model -i "$data/test.en" -o demo/test.hyp

step "BLEU and chrF on the test set"
build/bin/nmt-bleu "$data/test.de" -i demo/test.hyp -m bleu chrf -f text

step "ten of its sentences: English, our German, the reference"
paste -d '\n' "$data/test.en" demo/test.hyp "$data/test.de" |
  awk -v lines="$(wc -l <"$data/test.en")" '
  BEGIN { every = int(lines / 10); if (every < 1) every = 1; split("en   ours ref", label) }
  { sentence = int((NR - 1) / 3) }
  sentence % every == 0 && sentence / every < 10 {
    printf "%-4s  %s\n", label[(NR - 1) % 3 + 1], $0
    if (NR % 3 == 0) print ""
  }'
echo "Translate your own:  echo 'A dog runs over the grass.' |" \
  "build/bin/nmt-translate -m demo/model"
