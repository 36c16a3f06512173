#!/usr/bin/env bash
# Copies programs, tests, scripts and all libraries that they need, except the C library, into one
# folder for scripts/bench/gpu_check.sh on another machine with the same or a newer C library.
# cuBLAS and cuDNN are included if installed.
# Usage: scripts/bench/make_portable.sh BUILD FOLDER [DATA]; DATA: a folder with Multi30k to
# include.
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
# CUDA libraries that the programs load with dlopen().
for place in /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu; do
  for library in "$place"/libcublas.so.1[23] "$place"/libcublasLt.so.1[23] "$place"/libcudnn*.so.9; do
    if [ -e "$library" ] && [ ! -e "$folder/lib/$(basename "$library")" ]; then cp -L "$library" "$folder/lib/"; fi
  done
done
# The C library and the dynamic loader are those of the target machine.
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
