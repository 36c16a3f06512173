#!/usr/bin/env bash
# Installs the dependencies for building, testing and running nmt on Debian 12 and related systems.
# Does nothing if all are installed. Further packages may be named: "scripts/setup.sh chromium" also
# installs the browser that the test of nmt-serve's web page needs; without it, the test is skipped.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" && exit ;; esac

packages=(g++ cmake ninja-build make ccache git help2man clang-format pkgconf ca-certificates
          python3 python3-dev python3-numpy python3-venv libboost-program-options-dev
          libboost-context-dev libyaml-cpp-dev libsentencepiece-dev libopenblas-dev libdnnl2
          libfmt-dev nlohmann-json3-dev libicu-dev libboost-dev libcld2-dev libgtest-dev
          libgmock-dev libopenmpi-dev openmpi-bin "$@")

missing=()
for package in "${packages[@]}"; do
  # A line for each architecture; packages on hold are installed too.
  dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null |
    grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: this system has no apt-get; install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: neither root nor sudo; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  sudo=sudo
fi
echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
