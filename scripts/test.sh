#!/usr/bin/env bash
# Installs what is missing, builds with the tests and runs them. Arguments go to ctest: scripts/test.sh -R layers
# LANTERN_WERROR=ON in the environment makes warnings errors, in a build folder of its own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$LANTERN_ROOT/scripts/setup.sh"
cd "$LANTERN_ROOT"
werror=${LANTERN_WERROR:-OFF}
build_dir=build/release
[ "$werror" = OFF ] || build_dir=build/werror
mkdir -p build
log=$LANTERN_ROOT/$build_dir.log
: >"$log"
build() {
  build_or_fail "$log" cmake --preset release -B "$build_dir" -DLANTERN_TESTS=ON -DLANTERN_WERROR="$werror"
  build_or_fail "$log" cmake --build "$build_dir" -j "$(nproc)"
}
timed "build" build
# Two at a time; a test that measures time or memory is RUN_SERIAL in its CMakeLists.txt.
timed "tests" ctest --test-dir "$build_dir" -j 2 --output-on-failure --no-tests=error "$@" ||
  fail "tests failed (list above); again: ctest --test-dir $LANTERN_ROOT/$build_dir --rerun-failed --output-on-failure"
echo "all tests passed"
