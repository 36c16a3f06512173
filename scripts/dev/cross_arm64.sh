#!/usr/bin/env bash
# Builds nmt for ARM64 on an x86-64 machine with Debian's cross compiler, to be run by QEMU's user
# emulation: a check of that processor where none is at hand. Without a GPU, MPI and Python.
#
#   scripts/dev/cross_arm64.sh FOLDER [TARGET...]       # targets of the build, default all
#   qemu-aarch64 -L FOLDER/root FOLDER/build/bin/kernels_tests
#
# FOLDER receives root/ (Debian's ARM64 libraries, 400 MB, which nothing on this machine refers to)
# and build/. Existing parts are kept. It needs g++-aarch64-linux-gnu, qemu-user, cmake and ninja.
set -euo pipefail
if [ $# -eq 0 ]; then
  echo "usage: $0 FOLDER [TARGET...]" >&2
  exit 2
fi
source=$(realpath "$(dirname "$0")/../..")
mkdir -p "$1"
folder=$(realpath "$1")
shift
for program in aarch64-linux-gnu-g++ qemu-aarch64 cmake ninja; do
  if ! command -v "$program" >/dev/null; then
    echo "cross_arm64: no $program here; as root: apt-get install" \
      "g++-aarch64-linux-gnu qemu-user cmake ninja-build" >&2
    exit 1
  fi
done

if [ ! -e "$folder/root/done" ]; then
  # An apt of its own, which believes that nothing is installed and so fetches all that the
  # libraries need.
  mkdir -p "$folder"/apt/{lists,archives}/partial "$folder/root"
  : >"$folder/apt/status"
  options=(-q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
           -o Dir::State::lists="$folder/apt/lists" -o Dir::State::status="$folder/apt/status"
           -o Dir::Cache="$folder/apt" -o Dir::Cache::archives="$folder/apt/archives")
  apt-get "${options[@]}" update
  apt-get "${options[@]}" --no-install-recommends --download-only install libc6-dev \
    libstdc++6 libfmt-dev libyaml-cpp-dev nlohmann-json3-dev libboost-dev \
    libboost-program-options-dev libboost-context-dev libsentencepiece-dev libdnnl2 libicu-dev \
    libcld2-dev libgtest-dev libgmock-dev
  for package in "$folder"/apt/archives/*.deb; do
    dpkg -x "$package" "$folder/root"
  done
  : >"$folder/root/done"
fi

cat >"$folder/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT $folder/root)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L $folder/root)
EOF
cmake -S "$source" -B "$folder/build" -G Ninja \
  -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" -DNMT_WITH_CUDA=OFF -DNMT_WITH_MPI=OFF \
  -DNMT_WITH_PYTHON=OFF
cmake --build "$folder/build" -j "$(nproc)" ${@:+--target "$@"}
