# shellcheck shell=bash disable=SC2034
# Shared by the scripts of this folder; sourced, not run. Each starts with:
#   set -euo pipefail
#   source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

LANTERN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# One line, then the end.
fail() {
  echo "$(basename "$0"): error: $*" >&2
  trap - ERR
  exit 1
}
trap 'fail "\"$BASH_COMMAND\" failed (line $LINENO)"' ERR
set -E

# timed WHAT COMMAND...: runs it, prints how long it took and returns its status.
timed() {
  local what=$1 start=$SECONDS status=0
  shift
  "$@" || status=$?
  echo "== $what: $((SECONDS - start)) s"
  return "$status"
}

# build_or_fail LOG COMMAND...: runs a build step with its output in LOG; on failure the first errors and the end.
build_or_fail() {
  local log=$1
  shift
  "$@" >>"$log" 2>&1 && return
  grep -E -m 5 'error:|CMake Error|FAILED' "$log" >&2 || tail -n 5 "$log" >&2
  fail "the build failed; all of its output: $log"
}
