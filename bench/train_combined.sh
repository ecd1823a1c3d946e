#!/usr/bin/env bash
# Trains the combined network (bench/combined.cfg: CSP, SPP, BiFPN, RFB, ASFF, DropBlock) on the blood-cell pictures
# for 1,000 iterations and prints its loss every 50:
#   bench/train_combined.sh [-program FILE] [-cfg FILE] [-data FOLDER] [-out FOLDER] [flags of detector train]
# Fails when a loss or gradient is not finite: the program then stops by itself. Results: docs/combined.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$here/../build/release/bin/lantern
data=$here/../examples/bccd
cfg=$here/combined.cfg
out=
while [ $# -ge 2 ]; do
  case $1 in
    -program) program=$(realpath "$2") ;;
    -cfg) cfg=$(realpath "$2") ;;
    -data) data=$2 ;;
    -out) mkdir -p "$2" && out=$(cd "$2" && pwd) ;;
    *) break ;;
  esac
  shift 2
done
if [ ! -x "$program" ]; then
  echo "$program: no such program; build it or name one with -program" >&2
  exit 2
fi
if [ -z "$out" ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
cd "$data"
sed "s|^backup *=.*|backup = $out|" obj.data > "$out/obj.data"
"$program" detector train "$out/obj.data" "$cfg" -dont_show -quiet -log "$out/combined.jsonl" "$@" \
  > "$out/combined.log"
python3 - "$out/combined.jsonl" <<'PYTHON'
import json
import sys

print("| iteration | loss | average loss |\n|---:|---:|---:|")
rows = [json.loads(line) for line in open(sys.argv[1])]
for row in rows:
    if "loss" in row and row["iteration"] % 50 == 0:
        print(f"| {row['iteration']} | {row['loss']:.2f} | {row['average_loss']:.2f} |")
PYTHON
