#!/usr/bin/env bash
# Builds marian and marian-decoder for this processor: with OpenBLAS, without CUDA, SentencePiece,
# MKL and FBGEMM. compare_marian.py measures them.
#
#   scripts/bench/rivals/build_marian.sh FOLDER      # FOLDER/build/{marian,marian-decoder}
#
# FOLDER/source has Marian's sources, fetched here if they are missing; only the submodule intgemm
# is needed. Marian's warnings are errors, which newer compilers find more of, so -Werror is
# removed. It needs cmake, ninja, a C++ compiler, libopenblas-dev, zlib1g-dev and libsqlite3-dev,
# and takes about an hour of one core.
set -euo pipefail
if [ $# -ne 1 ]; then
  echo "usage: $0 FOLDER" >&2
  exit 2
fi
commit=c9f287db75b4ed27979717ff0cf543000e2e5b2e  # 1.12.43
folder=$1
source=$folder/source
mkdir -p "$folder"
if [ ! -e "$source/CMakeLists.txt" ]; then
  git init -q "$source"
  git -C "$source" fetch -q --depth 1 https://github.com/marian-nmt/marian-dev "$commit"
  git -C "$source" checkout -q FETCH_HEAD
  git -C "$source/src" submodule update --init --depth 1 3rd_party/intgemm
fi
sed -i 's/ -Werror / /' "$source/CMakeLists.txt"
cmake -S "$source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOMPILE_CUDA=OFF \
  -DUSE_SENTENCEPIECE=OFF -DUSE_MKL=OFF -DUSE_FBGEMM=OFF -DUSE_DOXYGEN=OFF -DUSE_TCMALLOC=OFF \
  -DCMAKE_EXE_LINKER_FLAGS=-lsqlite3
cmake --build "$folder/build" -j "$(nproc)" --target marian_train marian_decoder marian_conv
