#!/usr/bin/env bash
# The manual page of a program, from its --help and --version.
# Usage: scripts/dev/make_man_page.sh PROGRAM PAGE
set -euo pipefail
if [ $# -ne 2 ] || [ ! -x "$1" ]; then
  echo "usage: make_man_page.sh PROGRAM PAGE" >&2
  exit 2
fi
program=$1 page=$(realpath -m "$2")
# The first line of --help is "PROGRAM: what it does", which is the page's name line.
help=$("$program" --help)
summary=${help%%$'\n'*}
mkdir -p "$(dirname "$page")"
# help2man calls the program by way of a shell, without quotes around its path.
cd "$(dirname "$program")"
help2man --no-info --name "${summary#*: }" --output "$page" "./$(basename "$program")"
