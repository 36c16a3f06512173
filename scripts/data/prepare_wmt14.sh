#!/usr/bin/env bash
# Prepares WMT14 English-German from the public archives: train, newstest2013 (development) and
# newstest2014 (test) as raw text.
#
#   scripts/data/prepare_wmt14.sh [FOLDER]
#       default FOLDER: data/wmt14; needs 6 GB, 1.5 GB at the end
#
# Downloads go to FOLDER/archives. Interrupted downloads are resumed, complete ones are not
# repeated. An archive is checked against a checksum used by public software (table below;
# statmt.org publishes none). Its SHA-256 is recorded in FOLDER/archives/SHA256SUMS and checked by
# later runs. If an archive differs, the script asks on a terminal; otherwise it stops and prints
# the line for SHA256SUMS that accepts the archive. To prepare without a network, copy the archives
# there by hand (the script lists the missing ones and their addresses). A step is skipped if its
# result is newer than its inputs.
#
# The training data is Europarl v7, Common Crawl and News Commentary v9
# (statmt.org/wmt14/translation-task.html), cleaned by scripts/data/clean_corpus.py, which documents
# the rules. $NMT_WMT14_MIRROR replaces https://www.statmt.org.
set -euo pipefail
unset CDPATH
scripts=$(cd "$(dirname "$0")" && pwd)
program=prepare_wmt14
folder=${1:-data/wmt14}
mirror=${NMT_WMT14_MIRROR:-https://www.statmt.org}
# Local name, address, bytes (-: unknown), checksum, source of the checksum. Only one research
# project publishes the checksum of dev.tgz.
table="europarl-v7-de-en.tgz europarl/v7/de-en.tgz 197785698 \
sha1:53bb5408d22977c89284bd755717e6bbb5b12bc5 GluonNLP
training-parallel-commoncrawl.tgz wmt13/training-parallel-commoncrawl.tgz 918311367 \
sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5 TensorFlow-Datasets
training-parallel-nc-v9.tgz wmt14/training-parallel-nc-v9.tgz 80418416 \
sha256:cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485 TensorFlow-Datasets
dev.tgz wmt14/dev.tgz - \
sha256:cda0f85309e8ea4c9c2bc142cd795fb2771a5939ed5b4527b525dae05fa0c145 one-project-alone
test-full.tgz wmt14/test-full.tgz - md5:a8cd784e006feb32ac6f3d9ec7eb389a sacreBLEU"

. "$scripts/archives.sh"
need_tools python3 tar sha256sum sha1sum md5sum
fetch_archives
check_archives

hold_out() {  # archive, sgm file in it, result
  local sgm
  sgm=$(extract "$1" "$2")
  if [ ! -s "$3" ] || [ "$sgm" -nt "$3" ]; then
    python3 "$scripts/sgm_to_text.py" "$sgm" >"$3.part" || die "$sgm cannot be read"
    mv "$3.part" "$3"
  fi
}
for side in en de; do
  case $side in en) kind=src ;; de) kind=ref ;; esac
  hold_out dev.tgz "newstest2013-$kind.$side.sgm" "$folder/newstest2013.$side"
  hold_out test-full.tgz "newstest2014-deen-$kind.$side.sgm" "$folder/newstest2014.$side"
done
for set in newstest2013 newstest2014; do equal_lines $set en de; done

english="" german="" newest=""
for pair in europarl-v7-de-en.tgz:europarl-v7.de-en \
            training-parallel-commoncrawl.tgz:commoncrawl.de-en \
            training-parallel-nc-v9.tgz:news-commentary-v9.de-en; do
  for side in en de; do
    path=$(extract "${pair%%:*}" "${pair#*:}.$side")
    case $side in en) english+=,$path ;; de) german+=,$path ;; esac
    if [ -z "$newest" ] || [ "$path" -nt "$newest" ]; then newest=$path; fi
  done
done

for held in "$folder"/newstest2013.{en,de} "$folder"/newstest2014.{en,de}; do
  if [ "$held" -nt "$newest" ]; then newest=$held; fi
done
if [ ! -s "$folder/train.de" ] || [ ! -s "$folder/train.en" ] ||
  [ "$newest" -nt "$folder/train.de" ] ||
  [ "$scripts/clean_corpus.py" -nt "$folder/train.de" ]; then
  echo "prepare_wmt14: cleaning"
  python3 "$scripts/clean_corpus.py" "${english:1}" "${german:1}" "$folder"/train.{en,de} \
    --hold-out "$folder"/newstest2013.{en,de} "$folder"/newstest2014.{en,de} ||
    die "cleaning failed"
fi
wc -l "$folder"/{train,newstest2013,newstest2014}.{en,de}
echo "prepare_wmt14: train with: nmt-train --train-sets $folder/train.en $folder/train.de" \
  "--valid-sets $folder/newstest2013.en $folder/newstest2013.de"
echo "prepare_wmt14: $work can be removed"
