#!/usr/bin/env bash
# Builds the image of packaging/Containerfile from the packages of a release and runs it with a
# read-only root, without capabilities and with models that it cannot write. A client must get the
# translation of nmt-translate, and SIGTERM must end the server with status 0.
# Usage: packaging/test_image.sh FOLDER PROGRAMS MODEL [OPTION OF PODMAN RUN]...
# $PODMAN is the engine (default: podman), such as "podman --runtime runc". Needs network for the
# base image, unless the engine has it.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."
if [ $# -lt 3 ]; then
  echo "usage: packaging/test_image.sh FOLDER PROGRAMS MODEL [OPTION OF PODMAN RUN]..." >&2
  exit 2
fi
folder=$(realpath "$1") programs=$(realpath "$2") model=$(realpath "$3")
shift 3
read -ra engine <<<"${PODMAN:-podman}"
work=$(mktemp -d)
name=nmt-test-$$
trap '"${engine[@]}" rm --force --ignore "$name" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

step() { echo "== $1"; }
fail() {
  echo "test_image: $1" >&2
  "${engine[@]}" logs "$name" 2>&1 | tail -n 20 >&2 || true
  exit 1
}

step "image"
"${engine[@]}" build --pull=missing "$@" -f packaging/Containerfile -t nmt:test "$folder" \
  >"$work/build" 2>&1 || { tail -n 20 "$work/build" >&2; fail "the image was not built"; }
"${engine[@]}" image inspect --format '{{.Size}}' nmt:test | awk '{printf "%.0f MB\n", $1 / 1e6}'

step "container: read-only root, no capabilities, user 65532"
"${engine[@]}" run --detach --name "$name" --read-only --cap-drop=all \
  --publish 127.0.0.1::5000 --volume "$model:/models/en-de:ro" "$@" nmt:test >/dev/null ||
  fail "the container did not start"
address=$("${engine[@]}" port "$name" 5000/tcp 2>/dev/null || true)
address=${address:-127.0.0.1:5000}  # --network host publishes no port
for _ in $(seq 100); do
  curl -sf "http://$address/health" >/dev/null && break
  sleep 0.1
done
curl -sf "http://$address/health" || fail "no answer from $address"
echo
text="A man is sleeping."
curl -sf "http://$address/translate" -H 'Content-Type: application/json' \
  -d "{\"q\": \"$text\", \"source\": \"en\", \"target\": \"de\"}" >"$work/answer" ||
  fail "no translation"
expected=$("$programs/nmt-translate" -m "$model" --quiet --repetition-guard --recase <<<"$text")
grep -qF "\"$expected\"" "$work/answer" || fail "expected '$expected', got $(cat "$work/answer")"
cat "$work/answer"
echo
for path in / /models/en-de; do
  "${engine[@]}" exec "$name" grep -qE "^[^ ]+ $path [^ ]+ ro," /proc/1/mounts ||
    fail "$path is not mounted read-only"
done
"${engine[@]}" exec "$name" grep -q '^CapEff:[[:space:]]*0*$' /proc/1/status ||
  fail "the server has capabilities"
"${engine[@]}" exec "$name" grep -q '^Uid:[[:space:]]*65532' /proc/1/status ||
  fail "the server does not run as user 65532"

step "SIGTERM"
"${engine[@]}" stop --time 10 "$name" >/dev/null
status=$("${engine[@]}" inspect --format '{{.State.ExitCode}}' "$name")
[ "$status" = 0 ] || fail "exit status $status"
echo "test_image: passed"
