# shellcheck shell=bash disable=SC2034
# Sourced by the comparison scripts: the programs to compare with, as Debian packages them.

PYTHON=${PYTHON:-/usr/bin/python3}   # Debian's own: python3-torch is made for it

has_package() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# need_packages NAME...: installs what is missing; one line and exit code 4 where it cannot.
need_packages() {
  local missing=() package as_root=()
  for package in "$@"; do has_package "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "$(basename "$0"): ${missing[*]} missing, and installing needs root: run" \
           "'apt-get install ${missing[*]}' as root, or leave them out with --no-install" >&2
      exit 4
    fi
    as_root=(sudo)
  fi
  echo "$(basename "$0"): installing ${missing[*]} (leave them out with --no-install)" >&2
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "${missing[@]}" >&2; then
    echo "$(basename "$0"): apt-get could not install ${missing[*]}: run 'apt-get update' and" \
         "try again, or leave them out with --no-install" >&2
    exit 4
  fi
}

# Arguments without --no-install go to ARGUMENTS; INSTALL is 1 when packages may be installed.
parse_install_flag() {
  INSTALL=1
  ARGUMENTS=()
  local argument
  for argument in "$@"; do
    case $argument in
      --no-install) INSTALL=0 ;;
      -h|--help) INSTALL=0; ARGUMENTS+=("$argument") ;;
      *) ARGUMENTS+=("$argument") ;;
    esac
  done
}
