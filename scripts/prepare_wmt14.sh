#!/usr/bin/env bash
# WMT14 English-German from the public archives to training files: train, newstest2013 (development) and newstest2014 (test), raw text.
#
#   scripts/prepare_wmt14.sh [FOLDER]          FOLDER: data/wmt14 when not given; some 6 GB while it works, 1.5 GB at the end
#
# FOLDER/archives holds what is downloaded; a download that broke off is resumed, one that is there is not repeated. The archives have no
# published checksums, so FOLDER/archives/SHA256SUMS records them when an archive is first seen whole and every later run compares. To
# prepare without a network, put the archives there by hand (the script says which are missing, and from where). Every step is skipped whose
# result is newer than what it was made of.
#
# Europarl v7, Common Crawl, News Commentary v9 (statmt.org/wmt14/translation-task.html), cleaned by scripts/clean_corpus.py (the rules
# are on top of it). $NMT_WMT14_MIRROR replaces the addresses' https://www.statmt.org.
set -euo pipefail
case ${1:-} in
  -h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
esac
scripts=$(cd "$(dirname "$0")" && pwd)
folder=${1:-data/wmt14}
mirror=${NMT_WMT14_MIRROR:-https://www.statmt.org}
archives=$folder/archives
urls=("$mirror/europarl/v7/de-en.tgz" "$mirror/wmt13/training-parallel-commoncrawl.tgz" "$mirror/wmt14/training-parallel-nc-v9.tgz"
      "$mirror/wmt14/dev.tgz" "$mirror/wmt14/test-full.tgz")

die() {
  echo "prepare_wmt14: $*" >&2
  exit 1
}
name_of() { case $1 in */europarl/v7/de-en.tgz) echo europarl-v7-de-en.tgz ;; *) basename "$1" ;; esac; }

for tool in python3 tar sha256sum; do command -v "$tool" >/dev/null || die "$tool is not installed"; done
mkdir -p "$archives"

# 1. Archives. A part that broke off keeps the name .part, and curl or wget goes on from its end.
download() {
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 3 --connect-timeout 20 --continue-at - --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --continue --tries=3 --connect-timeout=20 --output-document="$2" "$1"
  else
    return 127
  fi
}
missing=()
for url in "${urls[@]}"; do
  name=$(name_of "$url")
  [ -s "$archives/$name" ] && continue
  echo "prepare_wmt14: $url"
  # A part that is whole already makes the download fail, too: the archive itself says whether all is there.
  reason=$(download "$url" "$archives/$name.part" 2>&1) || true
  if gzip -t "$archives/$name.part" 2>/dev/null; then
    mv "$archives/$name.part" "$archives/$name"
  else
    reason=${reason##*$'\n'}
    missing+=("$name ($url: ${reason:-neither curl nor wget is installed, or the archive is damaged})")
  fi
done
if [ ${#missing[@]} -gt 0 ]; then
  list=$(printf '; %s' "${missing[@]}")
  die "could not be downloaded: ${list:2}. Fetch them elsewhere, put them into $archives under these names, and start again"
fi

# 2. Checksums: recorded at the first sight, compared ever after.
sums=$archives/SHA256SUMS
touch "$sums"
for url in "${urls[@]}"; do
  name=$(name_of "$url")
  sum=$(sha256sum "$archives/$name" | cut -d' ' -f1)
  known=$(awk -v name="$name" '$2 == name {print $1}' "$sums")
  if [ -z "$known" ]; then
    gzip -t "$archives/$name" || die "$archives/$name is no whole archive; remove it and start again"
    echo "$sum  $name" >>"$sums"
    echo "prepare_wmt14: $name: SHA-256 $sum recorded (none is published to compare with)"
  elif [ "$sum" != "$known" ]; then
    die "$archives/$name has SHA-256 $sum, and $known was recorded in $sums; remove the archive to fetch it again"
  fi
done

# 3. Text. Archives differ in the folders they put files into: a file is found by its name.
work=$folder/work
extract() {  # archive, name of a file in it -> path
  local to=$work/$2
  if [ ! -s "$to" ] || [ "$archives/$1" -nt "$to" ]; then
    local inside
    inside=$(tar -tzf "$archives/$1" | grep -E "(^|/)$2\$" | head -n 1 || true)
    [ -n "$inside" ] || die "$archives/$1 has no file $2"
    mkdir -p "$work"
    tar -xzOf "$archives/$1" "$inside" >"$to.part"
    touch "$to.part"
    mv "$to.part" "$to"
  fi
  echo "$to"
}
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
for set in newstest2013 newstest2014; do
  [ "$(wc -l <"$folder/$set.en")" -eq "$(wc -l <"$folder/$set.de")" ] || die "$set: the two sides have unequal numbers of lines"
done

english="" german="" newest=""
for pair in europarl-v7-de-en.tgz:europarl-v7.de-en training-parallel-commoncrawl.tgz:commoncrawl.de-en \
            training-parallel-nc-v9.tgz:news-commentary-v9.de-en; do
  for side in en de; do
    path=$(extract "${pair%%:*}" "${pair#*:}.$side")
    case $side in en) english+=,$path ;; de) german+=,$path ;; esac
    if [ -z "$newest" ] || [ "$path" -nt "$newest" ]; then newest=$path; fi
  done
done

# 4. Training pairs.
if [ ! -s "$folder/train.de" ] || [ "$newest" -nt "$folder/train.de" ] || [ "$scripts/clean_corpus.py" -nt "$folder/train.de" ]; then
  echo "prepare_wmt14: cleaning"
  python3 "$scripts/clean_corpus.py" "${english:1}" "${german:1}" "$folder/train.en" "$folder/train.de" \
    --hold-out "$folder"/newstest2013.{en,de} "$folder"/newstest2014.{en,de} || die "cleaning failed"
fi
wc -l "$folder"/{train,newstest2013,newstest2014}.{en,de}
echo "prepare_wmt14: train with: nmt-train --train-sets $folder/train.en $folder/train.de --valid-sets $folder/newstest2013.en $folder/newstest2013.de"
echo "prepare_wmt14: $work can be removed"
