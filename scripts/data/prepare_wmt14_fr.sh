#!/usr/bin/env bash
# Prepares WMT14 English-French: the 12 million pairs selected by Schwenk (LIUM), which Bahdanau et
# al. 2015 and the ATR paper train on; newstest2012 and newstest2013 together (development);
# newstest2014 (test). The text is tokenized.
#
#   scripts/data/prepare_wmt14_fr.sh [FOLDER]
#       default FOLDER: data/wmt14-fr; needs 12 GB, 4 GB at the end
#
# Downloads go to FOLDER/archives and are resumed. No checksums are published: the SHA-256 of the
# first download is recorded in FOLDER/archives/SHA256SUMS and checked by later runs. To prepare
# without a network, copy the archives there by hand (the script lists the missing ones and their
# addresses). A step is skipped if its result is newer than its inputs.
#
# Training pairs are cleaned by scripts/data/clean_corpus.py, which documents the rules.
# $NMT_WMT14_FR_MIRROR replaces http://www-lium.univ-lemans.fr/~schwenk/cslm_joint_paper/data.
set -euo pipefail
unset CDPATH
scripts=$(cd "$(dirname "$0")" && pwd)
program=prepare_wmt14_fr
folder=${1:-data/wmt14-fr}
mirror=${NMT_WMT14_FR_MIRROR:-http://www-lium.univ-lemans.fr/~schwenk/cslm_joint_paper/data}
table="bitexts.tgz bitexts.tgz - - -
dev+test.tgz dev+test.tgz - - -"
. "$scripts/archives.sh"
need_tools python3 tar gzip sha256sum
fetch_archives
check_archives

hold_out() {  # name in the archive, name here
  local side from
  for side in en fr; do
    from=$(extract dev+test.tgz "$1.$side")
    if [ ! -s "$folder/$2.$side" ] || [ "$from" -nt "$folder/$2.$side" ]; then
      cp "$from" "$folder/$2.$side.part"
      mv "$folder/$2.$side.part" "$folder/$2.$side"
    fi
  done
  equal_lines "$2" en fr
}
hold_out ntst1213 newstest2012+2013
hold_out ntst14 newstest2014

english="" french="" newest=""
names=$(tar -tzf "$archives/bitexts.tgz" | sed -n 's|.*/||; s|\.gz$||; s|\.en$||p' | sort -u)
[ -n "$names" ] || die "$archives/bitexts.tgz has no English files"
for name in $names; do
  for side in en fr; do
    path=$(extract bitexts.tgz "$name.$side")
    case $side in en) english+=,$path ;; fr) french+=,$path ;; esac
    if [ -z "$newest" ] || [ "$path" -nt "$newest" ]; then newest=$path; fi
  done
done
for held in "$folder"/newstest2012+2013.{en,fr} "$folder"/newstest2014.{en,fr}; do
  if [ "$held" -nt "$newest" ]; then newest=$held; fi
done
if [ ! -s "$folder/train.fr" ] || [ ! -s "$folder/train.en" ] ||
  [ "$newest" -nt "$folder/train.fr" ] ||
  [ "$scripts/clean_corpus.py" -nt "$folder/train.fr" ]; then
  echo "$program: cleaning"
  python3 "$scripts/clean_corpus.py" "${english:1}" "${french:1}" "$folder"/train.{en,fr} \
    --hold-out "$folder"/newstest2012+2013.{en,fr} "$folder"/newstest2014.{en,fr} ||
    die "cleaning failed"
fi
wc -l "$folder"/{train,newstest2012+2013,newstest2014}.{en,fr}
echo "$program: train with: nmt-train --config configs/wmt14-en-fr-atr.yaml --train-sets" \
  "$folder/train.en $folder/train.fr" \
  "--valid-sets $folder/newstest2012+2013.en $folder/newstest2012+2013.fr"
echo "$program: $work can be removed"
