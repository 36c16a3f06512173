#!/usr/bin/env bash
# Makes the files of a release of the last commit: source archive, Debian packages, Python wheel,
# bill of materials (CycloneDX) and SHA256SUMS. The same commit gives the same bytes on the same
# system.
# Usage: scripts/release.sh [FOLDER]  (default: release; FOLDER/build is kept for a quicker rebuild)
set -euo pipefail
unset CDPATH
case ${1:-} in -h | --help) sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" && exit ;; esac
if (($# > 1)); then
  echo "release.sh: takes at most one folder, got '$2'" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
root=$PWD
folder=$(realpath -m "${1:-release}")

step() { echo "== $1"; }
fail() {
  echo "release: $1" >&2
  exit 1
}

[ -e .git ] || fail "needs a git checkout"
# Without dpkg-shlibdeps, cpack writes packages that depend on nothing.
for tool in dpkg-shlibdeps dpkg-deb objdump file help2man; do
  command -v "$tool" >/dev/null ||
    fail "needs $tool; on Debian: apt-get install dpkg-dev file help2man"
done
python=$(scripts/dev/python_venv.sh) || fail "needs the packages of scripts/dev/python_venv.sh"
"$python" -c 'import scikit_build_core' 2>/dev/null ||
  "$python" -m pip install --quiet --disable-pip-version-check 'scikit-build-core>=0.10' ||
  fail "pip could not install scikit-build-core"
part() { git show HEAD:include/nmt/version.h | sed -n "s/^#define NMT_VERSION_$1 //p"; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC LC_ALL=C.UTF-8 PYTHONHASHSEED=0
umask 022
mkdir -p "$folder/build"
log=$folder/build/log
: >"$log"
quietly() { "$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "failed: $*; see $log"; }; }

# The files of an earlier release, and no others: the folder may have some.
(cd "$folder" &&
  rm -f SHA256SUMS nmt-*.tar.gz nmt-*.cdx.json nmt-*.whl nmt_*.deb nmt-mpi_*.deb nmt-doc_*.deb \
    libnmt*.deb python3-nmt_*.deb)

step "source archive of $(git rev-parse --short HEAD)"
name=nmt-$version
git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$folder/$name.tar.gz"

# The packages are built from the archive. Unchanged files keep their times, and thus their objects;
# changed ones are new, whatever the time of the commit.
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tar -xzf "$folder/$name.tar.gz" -C "$fresh"
source=$folder/build/nmt
export CCACHE_BASEDIR=$source  # packages and wheel share objects
mkdir -p "$source"
(cd "$source" && find . -path ./build -prune -o -path ./wheel -prune -o -type f -print0) |
  while IFS= read -r -d '' file; do
    [ -f "$fresh/$name/$file" ] || rm "$source/$file"
  done
(cd "$fresh/$name" && find . -type f -print0) | while IFS= read -r -d '' file; do
  if ! cmp -s "$fresh/$name/$file" "$source/$file"; then
    mkdir -p "$(dirname "$source/$file")"
    if [ -d "$source/$file" ]; then rm -r "${source:?}/$file"; fi
    cp --preserve=mode "$fresh/$name/$file" "$source/$file"
  fi
  chmod --reference="$fresh/$name/$file" "$source/$file"
done

step "Debian packages"
options=(-DCMAKE_BUILD_TYPE=Release -DNMT_WITH_CUDA=OFF -DNMT_BUILD_TESTS=OFF
         "-Dnanobind_DIR=$("$python" -m nanobind --cmake_dir)"
         "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,relro,-z,now"
         "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,relro,-z,now"
         "-DCMAKE_MODULE_LINKER_FLAGS=-Wl,-z,relro,-z,now")
quietly cmake -S "$source" -B "$source/build" -G Ninja -DCMAKE_INSTALL_PREFIX=/usr \
  -DNMT_WITH_SERVER=ON -DNMT_WITH_MPI=ON -DNMT_WITH_PYTHON=ON \
  -DPython_EXECUTABLE=/usr/bin/python3 "${options[@]}"
quietly cmake --build "$source/build" -j "$(nproc)"
rm -rf "$source/build"/*.deb "$source/build/_CPack_Packages"
(cd "$source/build" && quietly cpack -G DEB)
mv "$source/build"/*.deb "$folder/"

step "wheel"
(cd "$source" && CXX=c++ quietly "$python" -m pip wheel --no-deps --no-build-isolation \
  --disable-pip-version-check --wheel-dir "$folder" --config-settings=build-dir="$source/wheel" \
  --config-settings=cmake.define.NMT_WITH_CUDA=OFF .)

step "bill of materials, checksums"
cd "$folder"
shopt -s nullglob
packages=(nmt_*.deb nmt-mpi_*.deb nmt-doc_*.deb libnmt*.deb python3-nmt_*.deb)
"$python" "$source/packaging/sbom.py" "$version" "$name.cdx.json" "$name.tar.gz" \
  "${packages[@]}" nmt-*.whl
sha256sum "$name.tar.gz" "${packages[@]}" nmt-*.whl "$name.cdx.json" >SHA256SUMS && cat SHA256SUMS
