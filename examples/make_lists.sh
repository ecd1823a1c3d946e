#!/usr/bin/env bash
# Lists for a classifier: every picture below DATA/train and DATA/valid, one path a line, into EXAMPLE/train.list and
# EXAMPLE/valid.list. The class of a picture is a part of its path, so nothing else is needed.
#   examples/make_lists.sh DATA EXAMPLE
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: $0 DATA EXAMPLE   (pictures in DATA/train and DATA/valid; lists go to EXAMPLE)" >&2
  exit 2
fi
data=$(cd "$1" && pwd)
for part in train valid; do
  list=$2/$part.list
  find -L "$data/$part" -type f \( -iname '*.png' -o -iname '*.jpg' -o -iname '*.jpeg' \) | LC_ALL=C sort >"$list"
  [ -s "$list" ] || { echo "$0: no picture below $data/$part" >&2; exit 3; }
  echo "$list: $(wc -l <"$list") pictures"
done
