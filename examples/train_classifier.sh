#!/usr/bin/env bash
# A classifier recipe from pictures to its figure: lists, training, top-1 of the last weights on the pictures that are kept back.
#   examples/train_classifier.sh DATA EXAMPLE [WEIGHTS]
# for example
#   examples/train_classifier.sh ~/fashion-mnist examples/fashion-mnist
#   examples/train_classifier.sh ~/flowers examples/flowers examples/bccd/nano-coco.conv.68
# LANTERN: the program (default build/release/bin/lantern).
set -euo pipefail
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
lantern=${LANTERN:-$examples/../build/release/bin/lantern}
[ -x "$lantern" ] || { echo "$0: no program $lantern; build it (scripts/build.sh) or set LANTERN" >&2; exit 2; }
"$examples/make_lists.sh" "$1" "$2"
data=$(echo "$2"/*.data) cfg=$(echo "$2"/*.cfg)
for file in "$data" "$cfg"; do
  [ -f "$file" ] || { echo "$0: want one .data and one .cfg file in $2" >&2; exit 3; }
done
runs=$(sed -n 's/^backup *= *//p' "$data")
base=$runs/$(basename "$cfg" .cfg)
mkdir -p "$runs"

start=$SECONDS
"$lantern" classifier train "$data" "$cfg" ${3+"$3"} -topk -dont_show 2>"$runs/train.err" | tee "$runs/train.log" |
  awk '/ avg, / && n++ % 100 == 0 || /Last accuracy/ { print; fflush() }'
seconds=$((SECONDS - start))
"$lantern" classifier valid "$data" "$cfg" "${base}_final.weights" -quiet --json="$runs/valid.json" >/dev/null
top1=$(sed -n 's/^ *"top1": *\([0-9.]*\),\{0,1\}$/\1/p' "$runs/valid.json" | head -n 1)
echo "top-1 $top1 after $seconds s of training: $runs/valid.json"
