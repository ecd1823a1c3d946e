#!/usr/bin/env bash
# From nothing to a trained detector: installs, builds, trains on examples/bccd (blood cells), measures and draws.
# Everything it makes lies in runs/demo.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LANTERN_ROOT"

readonly TIME_LIMIT_S=540  # of the training; the demo has ten minutes, what it installs and builds not counted
readonly PICTURES=8
readonly DATA=examples/bccd/obj.data CFG=examples/bccd/demo.cfg START=examples/bccd/nano-coco.conv.68 OUT=runs/demo

timed "setup" scripts/setup.sh
scripts/build.sh
lantern=$PWD/build/release/bin/lantern

rm -rf "$OUT"
mkdir -p "$OUT/pictures"
start=$SECONDS

# The last line that a program wrote to its error stream: what failed.
last_line() { sed '/^[[:space:]]*$/d' "$1" | tail -n 1; }

echo "== training $CFG on $DATA, all of its output: $OUT/train.log"
status=0
timeout --foreground --signal=INT -k 20 "$TIME_LIMIT_S" "$lantern" detector train "$DATA" "$CFG" "$START" -map -mAP_epochs 16 -dont_show 2>"$OUT/train.err" |
  tee "$OUT/train.log" | awk '/ avg loss, / && n++ % 25 == 0 || /mean average precision/ { print; fflush() }' ||
  status=$?
# A slow or busy machine reaches the limit first; training then has stopped after an iteration and kept its best weights.
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
  echo "== training stopped at the limit of $TIME_LIMIT_S s, going on with the best weights so far"
elif [ "$status" -ne 0 ]; then
  fail "training ended with status $status: $(last_line "$OUT/train.err")"
fi
echo "== training: $((SECONDS - start)) s"

weights=$OUT/demo_best.weights
[ -f "$weights" ] || weights=$OUT/demo_final.weights
[ -f "$weights" ] || weights=$OUT/demo_last.weights
[ -f "$weights" ] || fail "training left no weights in $OUT"

"$lantern" detector map "$DATA" "$CFG" "$weights" >"$OUT/map.txt" 2>"$OUT/map.err" ||
  fail "detector map: $(last_line "$OUT/map.err")"
grep 'mean average precision' "$OUT/map.txt" || fail "detector map printed no mean average precision; see $OUT/map.txt"

# Every n-th picture of the validation list.
mapfile -t valid <examples/bccd/valid.txt
step=$((${#valid[@]} / PICTURES))
for ((i = 0; i < PICTURES; ++i)); do echo "examples/bccd/${valid[i * step]}"; done >"$OUT/pictures.txt"
"$lantern" detector test "$DATA" "$CFG" "$weights" -dont_show -ext_output -out_dir "$OUT/pictures" \
  <"$OUT/pictures.txt" >"$OUT/detections.txt" 2>"$OUT/detections.err" ||
  fail "detector test: $(last_line "$OUT/detections.err")"

charts=("$OUT"/chart*.png)
[ -f "${charts[0]}" ] || fail "training drew no chart in $OUT"
echo
echo "weights:   $PWD/$weights"
echo "chart:     $PWD/${charts[0]}"
echo "pictures:  $PWD/$OUT/pictures ($(find "$OUT/pictures" -type f | wc -l) files)"
echo "precision: $PWD/$OUT/map.txt"
echo "training, measuring and drawing took $((SECONDS - start)) s"
