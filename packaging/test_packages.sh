#!/usr/bin/env bash
# Installs the packages of a release in a bare Debian 12, uses them, and checks that nothing is left
# after purging them. Needs root, debootstrap and network.
# Usage: packaging/test_packages.sh FOLDER [CHROOT]   (CHROOT is made if it does not exist)
set -euo pipefail
unset CDPATH
if [ $# -lt 1 ] || [ ! -d "$1" ]; then
  echo "usage: packaging/test_packages.sh FOLDER [CHROOT]" >&2
  exit 2
fi
folder=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
chroot=${2:-$work/chroot}
trap 'umount "$chroot/proc" 2>/dev/null || true; rm -rf "$work"' EXIT

step() { echo "== $1"; }
fail() {
  echo "test_packages: $1" >&2
  exit 1
}
inside() {
  chroot "$chroot" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
}
# Everything but caches, logs and the lists of installed packages.
listing() {
  (cd "$chroot" && find . -path ./proc -prune -o -path ./tmp -prune -o -path ./packages -prune -o \
    -path ./var/cache -prune -o -path ./var/lib/apt -prune -o -path ./var/lib/dpkg -prune -o \
    -path ./var/log -prune -o -print | sort)
}

if [ ! -x "$chroot/usr/bin/dpkg" ]; then
  step "debootstrap"
  debootstrap --variant=minbase bookworm "$chroot" http://deb.debian.org/debian >"$work/log" 2>&1 ||
    { tail "$work/log" >&2; fail "debootstrap failed"; }
fi
mountpoint -q "$chroot/proc" || mount -t proc proc "$chroot/proc"
cp /etc/resolv.conf "$chroot/etc/resolv.conf"
rm -rf "$chroot/packages" && mkdir "$chroot/packages"
cp "$folder"/*.deb "$chroot/packages/"
python3 scripts/data/make_toy_corpus.py --pairs 600 --seed 5 "$chroot/packages/data" >/dev/null

apt() {
  inside apt-get -q -y --no-install-recommends "$@" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; fail "apt-get $* failed"; }
}
step "what the packages need"
apt update
listing >"$work/bare"
own=$(cd "$chroot/packages" && for package in *.deb; do dpkg-deb -f "$package" Package; done)

step "installing the runtime package"
apt install "/packages/$(cd "$chroot/packages" && echo nmt_*.deb)"
kilobytes=$(inside dpkg-query -W -f '${Installed-Size}' nmt)
echo "nmt: $kilobytes kB installed"
inside sh -ec '
  cd /packages
  nmt-train --train-sets data/train.en data/train.de --model model --unit gru --dim-vocabs 400 \
    --dim-emb 48 --dim-rnn 48 --enc-depth 1 --dec-depth 1 --mini-batch-words 800 --after 60u \
    --disp-freq 20u --lr-warmup 20u --valid-lines 50
  nmt-translate -m model --quiet -i data/test.en -o test.hyp
  nmt-bleu data/test.de -i test.hyp
  for program in /usr/bin/nmt-*; do "$program" --version >/dev/null; done
  ls /usr/share/man/man1/nmt-train.1.gz /usr/share/bash-completion/completions/nmt-train \
    /lib/systemd/system/nmt-serve.service >/dev/null' \
  >"$work/use" 2>&1 || { tail -n 20 "$work/use" >&2; fail "the installed programs failed"; }
tail -n 3 "$work/use"
inside bash -ec '
  nmt-serve --port 0 en-de=/packages/model 2>/packages/serve.log &
  server=$!
  trap "kill $server 2>/dev/null || true" EXIT
  port=
  for try in $(seq 100); do
    port=$(sed -n "s|.*listening on http://127\.0\.0\.1:||p" /packages/serve.log 2>/dev/null ||
      true)
    [ -z "$port" ] || break
    sleep 0.1
  done
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf "GET /health HTTP/1.0\r\n\r\n" >&3
  grep -q "\"ok\"" <&3
  kill $server
  wait $server' || fail "nmt-serve did not answer"
echo "nmt-serve answers"

step "installing all packages"
apt install $(cd "$chroot/packages" && printf '/packages/%s ' *.deb)
inside python3 -c '
import nmt
translator = nmt.Translator("/packages/model")
lines = open("/packages/data/test.en").read().splitlines()
written = open("/packages/test.hyp").read().splitlines()
assert [each.hypotheses[0] for each in translator.translate_batch(lines)] == written
print("python3-nmt", nmt.__version__, "translates")'
inside sh -ec '
  test -e /usr/include/nmt/nmt.h
  test -e /usr/share/doc/nmt-doc/docs/guide/install.md
  test -e "$(echo /usr/lib/*/libnmt.so)"' || fail "files are missing"

step "purging"
apt purge $own
apt autoremove --purge
listing >"$work/purged"
left=$(comm -13 "$work/bare" "$work/purged" | grep -E 'nmt|/usr/lib/python3/dist-packages' || true)
[ -z "$left" ] || fail "left after purging: $left"
known=$(inside dpkg-query -W -f '${Package} ${Status}\n' $own 2>/dev/null |
  grep -v 'unknown ok not-installed' || true)
[ -z "$known" ] || fail "still known to dpkg: $known"
comm -13 "$work/bare" "$work/purged" | grep -vE '^\./(etc|run|var)/' | head || true
echo "nothing of nmt is left"
