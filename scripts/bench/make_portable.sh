#!/usr/bin/env bash
# Copies programs, tests, scripts and every library that they need, the C library aside, into one folder that runs on another machine
# with as new a C library: for scripts/bench/gpu_check.sh. cuBLAS and cuDNN go along when they are found.
# Usage: scripts/bench/make_portable.sh BUILD FOLDER [DATA]: DATA, a folder with Multi30k, goes along too.
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n 's/^# Usage: /usage: /p' "$0" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder/bin" "$folder/lib" "$folder/scripts/bench" "$folder/scripts/data"
cp -a "$build"/lib/. "$folder/lib/"
for program in nmt-train nmt-translate nmt-score nmt-bleu nmt-bench nmt-vocab cuda_tests device_tests; do
  if [ -x "$build/bin/$program" ]; then cp "$build/bin/$program" "$folder/bin/"; fi
done
cp "$here"/gpu_check.sh "$here"/gpu_check.py "$folder/scripts/bench/"
cp "$here"/../data/make_toy_corpus.py "$folder/scripts/data/"
# Libraries of CUDA that programs open by name.
for place in /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu; do
  for library in "$place"/libcublas.so.13 "$place"/libcublasLt.so.13 "$place"/libcudnn*.so.9; do
    if [ -e "$library" ] && [ ! -e "$folder/lib/$(basename "$library")" ]; then cp -L "$library" "$folder/lib/"; fi
  done
done
# The C library, its parts and the loader come from the machine itself.
for file in "$folder"/bin/* "$folder"/lib/*.so*; do
  LD_LIBRARY_PATH="$folder/lib" ldd "$file" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
done | sort -u | grep -vE '/(ld-linux[^/]*|libc|libm|libdl|libpthread|librt|libresolv)\.so' | while read -r library; do
  [ -e "$folder/lib/$(basename "$library")" ] || cp -L "$library" "$folder/lib/"
done
if [ $# -gt 2 ]; then
  mkdir -p "$folder/data/multi30k"
  cp "$3"/{train,val,test2016}.{en,de} "$folder/data/multi30k/"
fi
du -sh "$folder"
