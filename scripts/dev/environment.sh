# Sourced by scripts that need Python packages: the virtual environment .venv of this checkout,
# whose Python is the distribution's where there is one.
unset CDPATH
environment=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.venv
python=$environment/bin/python
system=python3
[ -x /usr/bin/python3 ] && system=/usr/bin/python3

fail() {
  echo "$(basename "$0" .sh): $*" >&2
  exit 1
}

# need_packages MODULES PACKAGES...: installs the packages unless Python can import the modules, a
# list separated by commas. The lock is for scripts that run at the same time; where there are no
# locks, they run without one.
need_packages() {
  local modules=$1
  shift
  { exec 9<"${environment%/*}" && flock 9; } 2>/dev/null || true
  if ! "$python" -c "import $modules" 2>/dev/null; then
    [ -x "$python" ] && "$python" -m pip --version >/dev/null 2>&1 ||
      "$system" -m venv "$environment" >&2 ||
      fail "cannot create a virtual environment in $environment;" \
        "scripts/setup.sh installs python3-venv"
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 \
      "$@" >&2 ||
      fail "pip could not install $* in $environment"
  fi
  exec 9<&-
}
