#!/usr/bin/env bash
# clang-tidy with the root's .clang-tidy over folders of src/ (default: graph and plan, on which every
# result stands; a file takes about ten seconds).
#   scripts/tidy.sh [folder ...]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LANTERN_ROOT"

tidy=$(command -v clang-tidy-16) || fail "clang-tidy-16 is missing: run scripts/setup.sh"
build=build/tidy
cmake -S . -B "$build" -G Ninja -DLANTERN_TESTS=OFF -DLANTERN_BENCH=OFF >"$build.log" 2>&1 ||
  fail "cmake failed; see $build.log"

folders=("$@")
[ ${#folders[@]} -gt 0 ] || folders=(graph plan)
files=()
for folder in "${folders[@]}"; do files+=(src/"$folder"/*.cpp); done
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet ||
  fail "clang-tidy found something in ${folders[*]}"
echo "clang-tidy: ${#files[@]} files of ${folders[*]} are clean"
