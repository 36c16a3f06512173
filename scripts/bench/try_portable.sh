#!/usr/bin/env bash
# Tries gpu_check.sh on the emulator under the limits of a borrowed machine: a root folder with
# nothing but the C library, bash, a few commands and python3; no network; every part killed after
# SECONDS and called again with the reports of the calls before, as often as it takes. A call may
# write at most 8 files of at most 16 MiB each.
# Usage: scripts/bench/try_portable.sh FOLDER [SECONDS] [PAGE.md]
#   FOLDER   made by make_portable.sh --no-cuda-libs --emulator
#   SECONDS  of one call, at least 20 (default 60; the calls themselves get 10 s less)
set -euo pipefail
unset CDPATH
if [ $# -lt 1 ] || [ $# -gt 3 ] || [ ! -d "$1/bin/emulated" ] ||
  [[ ! ${2:-60} =~ ^[1-9][0-9]+$ ]] || [ "${2:-60}" -lt 20 ]; then
  sed -n 's/^# Usage: /usage: /p' "$0" >&2
  exit 2
fi
folder=$(cd "$1" && pwd) seconds=${2:-60} page=$(realpath -m "${3:-gpu-check.md}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,usr/bin,lib64,proc,dev,tmp,out,results,portable}
ln -s ../bin "$root/usr/sbin"
python=$(readlink -f "$(command -v /usr/bin/python3 || command -v python3)")
library=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
copy_libraries() {  # that a program or module needs, to their places
  { ldd "$1" 2>/dev/null || true; } | { grep -o '/[^ )]*' || true; } | while read -r needed; do
    mkdir -p "$root$(dirname "$needed")"
    [ -e "$root$needed" ] || cp -L "$needed" "$root$needed"
  done
}
copy() {  # a program with its libraries
  mkdir -p "$root$(dirname "$1")"
  cp -L "$1" "$root$1"
  copy_libraries "$1"
}
for program in bash env dirname timeout cp cat ls; do
  copy "$(readlink -f "$(command -v "$program")")"
done
copy "$python"
for module in "$library"/lib-dynload/*.so; do copy_libraries "$module"; done
# The programs' own libraries must come from FOLDER: none but the C library's lies in the root.
find "$root" -name 'libstdc++*' -o -name 'libgcc_s*' -o -name 'libgomp*' | xargs -r rm -f
mkdir -p "$root$library"
cp -r "$library/." "$root$library/"
rm -rf "$root$library"/{test,idlelib,tkinter,ensurepip,site-packages,dist-packages}
ln -sf "$python" "$root/usr/bin/python3"
[ -e "$root/bin/bash" ] || ln -s "$(readlink -f "$(command -v bash)")" "$root/bin/bash"
for program in env dirname timeout; do
  [ -e "$root/usr/bin/$program" ] ||
    ln -s "$(readlink -f "$(command -v "$program")")" "$root/usr/bin/$program"
done
cp -a "$folder/." "$root/portable/"

inside() {  # a command in the root, without network and with a bare environment
  unshare --user --map-root-user --mount --net --pid --fork bash -c '
    mount -t proc proc "$1/proc" 2>/dev/null || true
    mount --rbind /dev "$1/dev" 2>/dev/null || true
    root=$1; shift
    exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"' \
    _ "$root" "$@"
}
fail() {
  echo "try_portable.sh: $1" >&2
  exit 1
}

results=$root/results
calls=0
for part in 1 2 3 4 5; do
  for ((attempt = 1; ; ++attempt)); do
    rm -rf "$root/out"
    mkdir -p "$root/out"
    status=0
    inside /usr/bin/timeout -s KILL "$seconds" \
      /bin/bash /portable/scripts/bench/gpu_check.sh /portable --only "$part" \
      --limit "$((seconds - 10))" --out /out --previous /results --emulated || status=$?
    calls=$((calls + 1))
    cp "$root"/out/part-*.json "$results"/ 2>/dev/null || true
    [ "$(find "$root/out" -type f | wc -l)" -le 8 ] || fail "part $part wrote more than 8 files"
    [ -z "$(find "$root/out" -type f -size +16M)" ] ||
      fail "part $part wrote a file of more than 16 MiB"
    case $status in
      0) break ;;
      3 | 137) [ "$attempt" -lt 30 ] || fail "part $part does not finish" ;;
      *) fail "part $part: status $status" ;;
    esac
  done
done
"$folder/scripts/bench/gpu_check.sh" --join "$results" "$page"
echo "$calls calls of at most $seconds s"
