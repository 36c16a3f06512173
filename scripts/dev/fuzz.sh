#!/usr/bin/env bash
# Builds the fuzz targets with clang (AddressSanitizer, UBSan) in build-fuzz/ and runs each over its
# committed seeds.
#   scripts/dev/fuzz.sh [AMOUNT] [TARGET...]
# AMOUNT is a number of executions of each target (default: 100000), or a number of seconds such as
# 60s. New inputs are added to build-fuzz/corpus/. A failing input is saved in build-fuzz/; the exit
# status is then 1.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/../.."
fail() {
  echo "scripts/dev/fuzz.sh: $1" >&2
  exit 2
}
amount=${1:-100000}
shift || true
case $amount in
  *[!0-9s]*|*s?*|s|"")
    fail "'$amount': expected a number of executions or of seconds, such as 60s" ;;
  *s) limit=-max_total_time=${amount%s} ;;
  *) limit=-runs=$amount ;;
esac
command -v clang++ >/dev/null || fail "clang++ is not installed (Debian: apt-get install clang)"
cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DNMT_BUILD_FUZZERS=ON \
  -DNMT_BUILD_TESTS=OFF -DNMT_WITH_CUDA=OFF -DNMT_WITH_MPI=OFF -DNMT_WITH_PYTHON=OFF >/dev/null
targets=("$@")
[ ${#targets[@]} -gt 0 ] ||
  mapfile -t targets < <(sed -n 's/^NMT_FUZZ(\(.*\))$/\1/p' tests/fuzz/targets.def)
cmake --build build-fuzz -j2 --target "${targets[@]/#/fuzz_}"
status=0
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$target"
  echo "== $target: $amount"
  "build-fuzz/bin/fuzz_$target" $limit -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/$target-" \
    "build-fuzz/corpus/$target" "tests/fuzz/seeds/$target" || status=1
done
exit $status
