#!/usr/bin/env bash
# Gets English-German training data: writes train, valid and test, each .en and .de, to a folder.
# Uses and reports the first available source:
#   1. $NMT_DATA/multi30k    (a local copy: train, val, test2016)
#   2. Multi30k task 1, raw (Elliott et al. 2016; image captions, 29,000 pairs), from its repository
#   3. Debian's package descriptions in English and German, through apt (about 45,000 pairs)
# Usage: scripts/data/get_data.sh [--source local|multi30k|debian] FOLDER
set -euo pipefail
unset CDPATH
scripts=$(cd "$(dirname "$0")" && pwd)

fail() {
  echo "get_data: $1" >&2
  exit "${2:-1}"
}
say() { echo "get_data: $*" >&2; }

wanted=
if [ "${1:-}" = --source ]; then
  wanted=${2:-}
  case $wanted in
    local | multi30k | debian) ;;
    *) fail "--source '$wanted': expected local, multi30k or debian" 2 ;;
  esac
  shift 2
fi
[ $# -eq 1 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] ||
  fail "usage: get_data.sh [--source local|multi30k|debian] FOLDER" 2
folder=$1
files=(train.en train.de valid.en valid.de test.en test.de)

complete() {  # folder: whether all six files exist and both sides have equal numbers of lines
  local split
  for split in train valid test; do
    [ -s "$1/$split.en" ] && [ -s "$1/$split.de" ] &&
      [ "$(wc -l <"$1/$split.en")" -eq "$(wc -l <"$1/$split.de")" ] || return 1
  done
}

if [ -s "$folder/SOURCE" ] && complete "$folder" && [ -z "$wanted" ]; then
  say "$folder has the data already: $(cat "$folder/SOURCE")"
  exit 0
fi
mkdir -p "$folder" 2>/dev/null || fail "$folder: cannot create the directory"
folder=$(cd "$folder" && pwd)  # apt resolves relative paths differently
work=$(mktemp -d "$folder/.get_data.XXXXXX") || fail "$folder: cannot be written"
trap 'rm -rf "$work"' EXIT

from_local() {
  local split name
  for split in train:train valid:val test:test2016; do
    for name in en de; do
      [ -r "$NMT_DATA/multi30k/${split#*:}.$name" ] || return 1
      cp "$NMT_DATA/multi30k/${split#*:}.$name" "$work/${split%:*}.$name" &&
        chmod u+w "$work/${split%:*}.$name" || return 1
    done
  done
  echo "Multi30k task 1 from $NMT_DATA/multi30k" >"$work/SOURCE"
}

from_multi30k() {
  python3 "$scripts/download_multi30k.py" "$work" || return 1
  echo "Multi30k task 1, raw, from its repository" >"$work/SOURCE"
}

# Downloads the package lists of this system's sources, with translations, to a private folder.
from_debian() {
  command -v apt-get >/dev/null || { say "no apt-get here"; return 1; }
  local apt=$work/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  # Unreachable sources are ignored as long as one with translations is reachable.
  apt-get -q -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=de,en -o Acquire::Retries=1 \
    -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 update >"$apt/log" 2>&1 || true
  if ! compgen -G "$apt/lists/*_Translation-de*" >/dev/null; then
    say "apt downloaded no German package descriptions:" \
      "$(grep -m1 -E '^(E|W|Err)' "$apt/log" || echo 'no error message')"
    return 1
  fi
  python3 "$scripts/align_descriptions.py" "$apt/lists" "$work" || return 1
  echo "Debian's package descriptions, through apt" >"$work/SOURCE"
}

for source in local multi30k debian; do
  [ -z "$wanted" ] || [ "$wanted" = "$source" ] || continue
  if [ "$source" = local ] && [ -z "${NMT_DATA:-}" ]; then
    [ -z "$wanted" ] || say "NMT_DATA is not set"
    continue
  fi
  if "from_$source" && complete "$work"; then
    (cd "$work" && mv "${files[@]}" SOURCE "$(cd .. && pwd)/")
    say "took $(cat "$folder/SOURCE"): $(wc -l <"$folder/train.en") pairs for training," \
      "$(wc -l <"$folder/valid.en") for validation," \
      "$(wc -l <"$folder/test.en") for testing, in $folder"
    exit 0
  fi
  say "source '$source' is not to be had here"
done
fail "no English-German data is available; \
set NMT_DATA to a folder with multi30k/{train,val,test2016}.{en,de}\
${wanted:+, and take --source local}"
