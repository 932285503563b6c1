# shellcheck shell=bash
# Owns what every script shares: where the repository and the cache are, how progress, time and
# failure are shown, how a cargo tool gets into the cache. Deliberately does nothing by itself.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Things that outlive a clone: tools by version, the wasm standard library by compiler, logs.
CACHE=${LEASEHOLD_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/leasehold}
# A shell that is not a login shell does not know cargo's folder; rustup's Rust goes before Debian's.
case :$PATH: in
  *:"${CARGO_HOME:-$HOME/.cargo}/bin":*) ;;
  *) PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH ;;
esac
export PATH=$CACHE/bin:$PATH
SELF=${0##*/}
cd "$ROOT" || exit 1

say() { printf '%s: %s\n' "$SELF" "$*"; }

# die WHAT MEND: says what is wrong and the command that mends it.
die() {
  printf '%s: %s\n' "$SELF" "$1" >&2
  if [[ -n ${2:-} ]]; then printf '%s: mend it with: %s\n' "$SELF" "$2" >&2; fi
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

now_us() { printf '%s' "${EPOCHREALTIME//[^0-9]/}"; }

# seconds_since START_US: with one digit after the point.
seconds_since() {
  local ms=$((($(now_us) - $1) / 1000))
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}

# quietly LABEL COMMAND…: one line of progress; the output goes to a log, its end is shown on failure.
quietly() {
  local label=$1 start log status=0
  shift
  mkdir -p "$CACHE/log"
  log=$CACHE/log/${label//[^a-zA-Z0-9]/-}.log
  start=$(now_us)
  printf '%s: %s …' "$SELF" "$label"
  # 9 is the lock of scripts/setup: nothing that stays behind may keep it.
  "$@" >"$log" 2>&1 </dev/null 9>&- || status=$?
  if ((status == 0)); then
    printf ' %s s\n' "$(seconds_since "$start")"
  else
    printf ' failed after %s s (status %d); the end of %s:\n' "$(seconds_since "$start")" "$status" "$log"
    tail -n 30 "$log"
  fi
  return "$status"
}

# locked_version CRATE: its version in Cargo.lock.
locked_version() {
  awk -v crate="$1" '$0 == "name = \"" crate "\"" { getline; gsub(/version = |"/, ""); print; exit }' "$ROOT/Cargo.lock"
}

# cargo_install ROOT CRATE ARGUMENT…: a tool into the cache, built fast rather than small.
cargo_install() {
  local root=$1 work status=0
  shift
  work=$(mktemp -d)
  quietly "cargo install $*" env -u RUSTFLAGS CARGO_TARGET_DIR="$work" CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false \
    cargo install --locked --root "$root" "$@" || status=$?
  rm -rf "$work"
  return "$status"
}
