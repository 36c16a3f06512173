#!/usr/bin/env bash
# Builds the fuzz targets with clang (AddressSanitizer, UBSan) in build-fuzz/ and runs each over its committed seeds.
#   scripts/dev/fuzz.sh [EXECUTIONS] [TARGET...]      default: 100000 of each target
# New inputs are added to build-fuzz/corpus/. A failing input is saved in build-fuzz/; the exit
# status is then 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
executions=${1:-100000}
shift || true
command -v clang++ >/dev/null || { echo "scripts/dev/fuzz.sh: clang++ is not installed (Debian: apt-get install clang)" >&2; exit 2; }
cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DNMT_BUILD_FUZZERS=ON -DNMT_BUILD_TESTS=OFF >/dev/null
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^NMT_FUZZ(\(.*\))$/\1/p' tests/fuzz/targets.def)
cmake --build build-fuzz -j2 --target "${targets[@]/#/fuzz_}"
status=0
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$target"
  echo "== $target: $executions executions"
  "build-fuzz/bin/fuzz_$target" -runs="$executions" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build-fuzz/$target-" "build-fuzz/corpus/$target" "tests/fuzz/seeds/$target" || status=1
done
exit $status
