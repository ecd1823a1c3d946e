#!/usr/bin/env bash
# Infers the networks of a folder of cfgs (batch 1, 416, fp32, 2 threads, random weights) with
# Lantern and OpenCV's dnn module in turns and prints milliseconds, their ratio, peak memory and the
# layers that take the time. All options: bench/compare_opencv.sh --help. Method:
# docs/performance.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/peers.sh"
parse_install_flag "$@"
if [ "$INSTALL" -eq 1 ]; then need_packages python3-opencv; fi
exec "$PYTHON" -B "$here/compare_opencv.py" ${ARGUMENTS[@]+"${ARGUMENTS[@]}"}
