#!/usr/bin/env bash
# Copies programs, tests, scripts and all libraries that they need, except the C library, into one
# folder for scripts/bench/gpu_check.sh on another machine with the same or a newer C library.
# Usage: make_portable.sh [--no-cuda-libs] [--emulator] [--max-mib N] BUILD FOLDER [DATA]
#   --no-cuda-libs  leave out cuBLAS and cuDNN, which gpu_check.sh finds in the Python packages of
#                   PyTorch on the other machine, and strip programs and libraries
#   --emulator      add the emulator's programs, to try the procedure without a GPU
#   --max-mib N     fail if the folder is larger (default with --no-cuda-libs: 64)
#   DATA            a folder with Multi30k to include
set -euo pipefail
unset CDPATH

usage() {
  echo "make_portable.sh: $1" >&2
  sed -n 's/^# Usage: /usage: /p' "$0" >&2
  exit 2
}

cuda_libs=true emulator=false max_mib=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --no-cuda-libs) cuda_libs=false ;;
    --emulator) emulator=true ;;
    --max-mib)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage "--max-mib: '${2:-}' is not a number of MiB"
      max_mib=$2
      shift
      ;;
    *) usage "unknown option $1" ;;
  esac
  shift
done
[ $# -ge 2 ] && [ $# -le 3 ] || usage "expected BUILD FOLDER [DATA]"
$cuda_libs || max_mib=${max_mib:-64}
[ -x "$1/bin/nmt-train" ] || usage "$1: there is no bin/nmt-train"
[ ! -e "$2" ] || [ -d "$2" ] || usage "$2: is no folder"
if [ $# -gt 2 ]; then
  for file in "$3"/{train,val,test2016}.{en,de}; do
    [ -r "$file" ] || usage "$file: cannot be read"
  done
fi
build=$(cd "$1" && pwd)
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"/{bin,lib} "$folder/scripts/data" "$folder"/scripts/bench/{gpu,common,pytorch}
cp -a "$build"/lib/. "$folder/lib/"
programs=(nmt-train nmt-translate nmt-score nmt-bleu nmt-bench nmt-vocab cuda_tests device_tests)
if $emulator; then
  mkdir -p "$folder/bin/emulated"
  programs+=(cuda_emulated_tests device_emulated_tests emulated/nmt-train emulated/nmt-translate
             emulated/nmt-score emulated/nmt-bench)
fi
for program in "${programs[@]}"; do
  if [ -x "$build/bin/$program" ]; then cp "$build/bin/$program" "$folder/bin/$program"; fi
done
cp "$here"/{gpu_check,make_portable}.sh "$here"/{gpu_check,processor_table}.py \
  "$folder/scripts/bench/"
cp "$here"/pytorch/{compare_layers,compare_pytorch,pytorch_model}.py \
  "$folder/scripts/bench/pytorch/"
cp "$here"/gpu/*.py "$folder/scripts/bench/gpu/"
cp "$here"/common/*.py "$folder/scripts/bench/common/"
cp "$here"/../data/make_toy_corpus.py "$folder/scripts/data/"
if $cuda_libs; then  # the programs load them with dlopen()
  for place in /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu; do
    for library in "$place"/{libcublas.so.1[23],libcublasLt.so.1[23],libcudnn*.so.9}; do
      if [ -e "$library" ] && [ ! -e "$folder/lib/$(basename "$library")" ]; then
        cp -L "$library" "$folder/lib/"
      fi
    done
  done
fi
# The C library and the dynamic loader are those of the target machine. The others lie beside our
# libraries, where the run path of programs and libraries leads.
own=$(cd "$folder" && pwd)
while read -r library; do
  case $library in "$own"/*) continue ;; esac
  [ -e "$folder/lib/$(basename "$library")" ] || cp -L "$library" "$folder/lib/"
done < <(find "$folder/bin" "$folder/lib" -type f | while read -r file; do
  LD_LIBRARY_PATH="$folder/lib" ldd "$file" 2>/dev/null |
    sed -n 's/^[^=]*=> \(\/.*\) (0x[0-9a-f]*)$/\1/p'
done | sort -u | grep -vE '/(ld-linux[^/]*|libc|libm|libdl|libpthread|librt|libresolv)\.so')
if ! $cuda_libs; then
  find "$folder/bin" "$folder/lib" -type f -exec strip --strip-unneeded {} +
fi
if [ $# -gt 2 ]; then
  mkdir -p "$folder/data/multi30k"
  cp "$3"/{train,val,test2016}.{en,de} "$folder/data/multi30k/"
fi
bytes=$(find "$folder" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
mib=$(((bytes + (1 << 20) - 1) >> 20))
echo "$folder: $mib MiB in $(find "$folder" -type f | wc -l) files"
if [ -n "$max_mib" ] && [ "$mib" -gt "$max_mib" ]; then
  echo "make_portable.sh: $folder: $mib MiB, more than $max_mib MiB; the largest files:" >&2
  find "$folder" -type f -printf '%s %P\n' | sort -rn | head -n 5 |
    awk '{ printf "%6.1f MiB  %s\n", $1 / 1048576, $2 }' >&2
  exit 1
fi
