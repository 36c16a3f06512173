#!/usr/bin/env bash
# Prepares IWSLT14 German-English (talks): train, valid and test as raw text, split as in the
# literature since Ranzato et al. 2016: every 23rd training pair is for development; the test set is
# dev2010, dev2012 and tst2010 to tst2012 together.
#
#   scripts/data/prepare_iwslt14.sh [FOLDER]        default FOLDER: data/iwslt14; needs 150 MB
#
# The download goes to FOLDER/archives and is resumed. No checksum is published: the SHA-256 of the
# first download is recorded in FOLDER/archives/SHA256SUMS and checked by later runs. To prepare
# without a network, copy the archive there by hand (the script prints its address). A step is
# skipped if its result is newer than its inputs.
#
# Pairs are cleaned by scripts/data/clean_corpus.py with at most 175 words for a side and a ratio of
# 1.5, except the test set. Published figures are of lowercased, tokenized text; this text is
# neither. $NMT_IWSLT14_MIRROR replaces https://dl.fbaipublicfiles.com/fairseq/data/iwslt14.
set -euo pipefail
unset CDPATH
scripts=$(cd "$(dirname "$0")" && pwd)
program=prepare_iwslt14
folder=${1:-data/iwslt14}
mirror=${NMT_IWSLT14_MIRROR:-https://dl.fbaipublicfiles.com/fairseq/data/iwslt14}
table="de-en.tgz de-en.tgz - - -"
. "$scripts/archives.sh"
need_tools python3 tar gzip sha256sum
fetch_archives
check_archives

# Lines of a tagged file that are text; titles and descriptions count, as on both sides.
spoken() {
  sed -E '/^[[:space:]]*<(url|talkid|keywords|speaker|reviewer|translator|doc|\/doc)/d
          s/<\/?(title|description)>//g' "$1"
}

newest=""
for side in de en; do
  tagged=$(extract de-en.tgz "train.tags.de-en.$side")
  if [ -z "$newest" ] || [ "$tagged" -nt "$newest" ]; then newest=$tagged; fi
  if [ ! -s "$work/all.$side" ] || [ "$tagged" -nt "$work/all.$side" ]; then
    spoken "$tagged" >"$work/all.$side.part"
    mv "$work/all.$side.part" "$work/all.$side"
  fi
  : >"$work/test.$side"
  for set in TED.dev2010 TEDX.dev2012 TED.tst2010 TED.tst2011 TED.tst2012; do
    xml=$(extract de-en.tgz "IWSLT14.$set.de-en.$side.xml")
    python3 "$scripts/sgm_to_text.py" "$xml" >>"$work/test.$side" || die "$xml cannot be read"
  done
  cmp -s "$work/test.$side" "$folder/test.$side" || mv "$work/test.$side" "$folder/test.$side"
done
equal_lines test de en

if [ ! -s "$folder/train.en" ] || [ ! -s "$folder/train.de" ] ||
  [ ! -s "$folder/valid.en" ] || [ ! -s "$folder/valid.de" ] ||
  [ "$newest" -nt "$folder/train.en" ] ||
  [ "$scripts/clean_corpus.py" -nt "$folder/train.en" ]; then
  python3 "$scripts/clean_corpus.py" "$work"/all.{de,en} "$work"/clean.{de,en} \
    --max-words 175 --max-ratio 1.5 --hold-out "$folder"/test.{de,en} || die "cleaning failed"
  for side in de en; do
    awk 'NR % 23 == 0' "$work/clean.$side" >"$folder/valid.$side"
    awk 'NR % 23 != 0' "$work/clean.$side" >"$folder/train.$side.part"
    mv "$folder/train.$side.part" "$folder/train.$side"
  done
fi
wc -l "$folder"/{train,valid,test}.{de,en}
echo "$program: train with: nmt-train --config configs/iwslt14-de-en-group.yaml --train-sets" \
  "$folder/train.de $folder/train.en --valid-sets $folder/valid.de $folder/valid.en"
echo "$program: $work can be removed"
