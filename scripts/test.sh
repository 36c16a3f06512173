#!/usr/bin/env bash
# Installs dependencies, builds, and runs all tests: the release build, the unit tests under
# address and undefined-behavior sanitizers, and the multi-threaded tests under the thread
# sanitizer. $NMT_FUZZ_SECONDS is how long each fuzz target runs on mutations under sanitizers.
set -euo pipefail
unset CDPATH
case ${1:-} in -h | --help) sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" && exit ;; esac
if (($# > 0)); then
  echo "test.sh: takes no arguments, got '$1'" >&2
  exit 2
fi
cd "$(dirname "$0")/.."

scripts/setup.sh
scripts/dev/python_venv.sh >/dev/null || echo "== the Python module is not built or tested"
jobs=$(nproc)

configure_and_build() {  # preset, targets (none: all)
  local preset=$1
  shift
  echo "== building: $preset"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" -j "$jobs" ${@:+--target "$@"} -- --quiet
}

configure_and_build tsan {core,data,text,serve}_tests
echo "== tests with threads, thread sanitizer"
# Excludes three single-threaded tests that take long under this sanitizer.
slow='Vocabulary.MillionBytesOfNoTextAreQuick:Vocabulary.CorruptBytesAreRejectedOrHarmless'
GTEST_FILTER="-$slow:Html.HostileHtmlIsQuick" \
  TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp" \
  ctest --preset tsan --timeout 600 -j "$jobs"

configure_and_build asan-ubsan \
  {core,config,tensor,kernels,text,serve,autograd,data,nn,model,search}_tests \
  {train,eval,tasks,app,library,fuzz,cuda_emulated,emulator,device_emulated,standin}_tests
echo "== unit tests, address and undefined-behavior sanitizers"
# Without the slower checks of the source tree, which the release build has too.
NMT_FUZZ_SECONDS=${NMT_FUZZ_SECONDS:-4} \
  ctest --preset asan-ubsan --timeout 900 -j "$jobs" -LE programs -E '^(format|tree|includes)$'

configure_and_build release
echo "== unit tests"
ctest --preset release --timeout 900 -j "$jobs" -LE programs
echo "== tests of the programs"
ctest --preset release --timeout 900 -j "$jobs" -L programs
