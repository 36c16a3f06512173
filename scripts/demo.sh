#!/usr/bin/env bash
# The main job on a fresh machine: installs what is needed, builds, gets real English-German text, trains a model for a few minutes
# (NMT_DEMO_MINUTES, default 5), translates a test set that it has not seen, prints BLEU and some translations. Everything it
# makes lies in build/ and demo/; run again, it goes on from there.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${NMT_DEMO_MINUTES:-5}

scripts/setup.sh
echo "== building"
cmake --preset release >/dev/null
cmake --build --preset release -j "$(nproc)" --target nmt-train nmt-translate nmt-bleu -- --quiet
bin=build/bin data=demo/data model=demo/model

echo "== data"
scripts/get_data.sh "$data"

echo "== training, $minutes minutes"
"$bin/nmt-train" --config configs/demo.yaml "$data/train.en" "$data/train.de" --valid-sets "$data/valid.en" "$data/valid.de" \
  --model "$model" --max-minutes "$minutes"

echo "== translating the test set"
"$bin/nmt-translate" -m "$model" <"$data/test.en" >demo/test.hyp.de
"$bin/nmt-bleu" "$data/test.de" -i demo/test.hyp.de

echo
echo "== some translations"
paste -d '\n' "$data/test.en" demo/test.hyp.de "$data/test.de" | awk '
  NR % 3 == 1 { print "source:     " $0 }
  NR % 3 == 2 { print "nmt:        " $0 }
  NR % 3 == 0 { print "reference:  " $0 "\n"; if (++n == 10) exit }'
echo "Try your own: echo 'A dog is running.' | $bin/nmt-translate -m $model"
