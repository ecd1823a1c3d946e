#!/usr/bin/env bash
# `detector train` on blood-cell pictures, loader and augmentation included, with Lantern and
# Debian's darknet in turns: images per second and the share of time spent waiting for the loader.
# All options: bench/train_bccd.sh --help. Method: docs/performance.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/peers.sh"
parse_install_flag "$@"
if [ "$INSTALL" -eq 1 ]; then need_packages darknet; fi
exec "$PYTHON" -B "$here/train_bccd.py" ${ARGUMENTS[@]+"${ARGUMENTS[@]}"}
