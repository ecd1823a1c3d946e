#!/usr/bin/env bash
# Builds the release program, build/release/bin/lantern. Arguments go to cmake: scripts/build.sh -DLANTERN_NATIVE=OFF
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LANTERN_ROOT"

command -v cmake >/dev/null && command -v ninja >/dev/null || fail "cmake or ninja is missing; run scripts/setup.sh"
mkdir -p build
log=$LANTERN_ROOT/build/release.log
: >"$log"
build() {
  build_or_fail "$log" cmake --preset release "$@"
  # Named by its file: the program and what it needs, not the tests.
  build_or_fail "$log" cmake --build --preset release -j "$(nproc)" --target bin/lantern
}
timed "build" build "$@"
