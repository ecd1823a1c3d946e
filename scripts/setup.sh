#!/usr/bin/env bash
# Installs the packages of scripts/packages.txt (with --oracles also of scripts/oracles.txt) that are missing (Debian 12). Needs root or sudo only when something
# is missing; a second run does nothing and needs no network.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  fail "needs a Debian system with apt; on others install what scripts/packages.txt names by hand"

lists=("$LANTERN_ROOT/scripts/packages.txt")
case "${1:-}" in
  "") ;;
  --oracles) lists+=("$LANTERN_ROOT/scripts/oracles.txt") ;;
  *) fail "unknown argument '$1'; there is --oracles" ;;
esac

missing=()
while read -r package; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "${lists[@]}")

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all packages are installed"
  exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  fail "these packages are missing and neither root nor sudo is here to install them: ${missing[*]}"
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$log" 2>&1
}
# The reason apt gives, last, since its other output can be long.
reason() { grep -E '^(E|Err|W):' "$log" | tail -n 1 || tail -n 1 "$log"; }
# Package lists may be absent or stale (containers): fetch them when the first try fails.
if ! install install -y --no-install-recommends "${missing[@]}"; then
  install update || fail "apt-get update failed: $(reason)"
  install install -y --no-install-recommends "${missing[@]}" || fail "apt-get could not install ${missing[*]}: $(reason)"
fi
echo "setup: installed ${#missing[@]} packages"
