#!/usr/bin/env bash
# Trains yolov3-tiny (416, mini-batch 8, fp32) with Lantern, PyTorch and Debian's darknet in turns
# and prints medians, ratios and peak memory. All options: bench/compare.sh --help. Method:
# docs/performance.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/peers.sh"
parse_install_flag "$@"
if [ "$INSTALL" -eq 1 ]; then need_packages python3-torch darknet; fi
exec "$PYTHON" -B "$here/compare.py" ${ARGUMENTS[@]+"${ARGUMENTS[@]}"}
