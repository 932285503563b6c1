# shellcheck shell=bash
# Shared by every script: paths of the repository and the cache, output of progress, time and
# failures, installation of cargo tools into the cache. Runs nothing by itself.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Kept between clones: tools by version, the wasm standard library by compiler, logs.
CACHE=${LEASEHOLD_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/leasehold}
# A non-login shell has no cargo in PATH; rustup's Rust has priority over Debian's.
case :$PATH: in
  *:"${CARGO_HOME:-$HOME/.cargo}/bin":*) ;;
  *) PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH ;;
esac
export PATH=$CACHE/bin:$PATH
SELF=${0##*/}
cd "$ROOT" || exit 1

say() { printf '%s: %s\n' "$SELF" "$*"; }

# die ERROR REMEDY: prints the error and the command that fixes it.
die() {
  printf '%s: %s\n' "$SELF" "$1" >&2
  if [[ -n ${2:-} ]]; then printf '%s: fix it with: %s\n' "$SELF" "$2" >&2; fi
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

now_us() { printf '%s' "${EPOCHREALTIME//[^0-9]/}"; }

# seconds_since START_US: with one digit after the point.
seconds_since() {
  local ms=$((($(now_us) - $1) / 1000))
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}

# log_file LABEL: where the output of that step goes. The name of a file may have 255 bytes, a list of packages more.
log_file() {
  local name=${1//[^a-zA-Z0-9]/-}
  printf '%s/log/%s.log' "$CACHE" "${name:0:100}"
}

# quietly LABEL COMMAND…: one line of progress; the output goes to a log, whose end is shown on failure.
quietly() {
  local label=$1 start log status=0
  shift
  mkdir -p "$CACHE/log"
  log=$(log_file "$label")
  start=$(now_us)
  printf '%s: %s …' "$SELF" "$label"
  # 9 is the lock of scripts/setup: a remaining child process must not keep it.
  "$@" >"$log" 2>&1 </dev/null 9>&- || status=$?
  if ((status == 0)); then
    printf ' %s s\n' "$(seconds_since "$start")"
  else
    printf ' failed after %s s (status %d); the end of %s:\n' "$(seconds_since "$start")" "$status" "$log"
    tail -n 30 "$log"
  fi
  return "$status"
}

# in_background COMMAND…: starts it in a process group of its own, whose number is in GROUP: a command in the background ignores Ctrl-C,
# so end_group has to end it.
in_background() {
  set -m
  "$@" </dev/null &
  GROUP=$!
  set +m
}

# group_ended: waits for the command in the background, and returns its status.
group_ended() {
  local status=0
  wait "$GROUP" || status=$?
  GROUP=''
  return "$status"
}

# end_group: ends the command in the background with all that it started, if it still runs.
end_group() {
  [[ -z ${GROUP:-} ]] || kill -- "-$GROUP" 2>/dev/null || true
}

# locked_version CRATE: its version in Cargo.lock.
locked_version() {
  awk -v crate="$1" '$0 == "name = \"" crate "\"" { getline; gsub(/version = |"/, ""); print; exit }' "$ROOT/Cargo.lock"
}

# cargo_install ROOT CRATE ARGUMENT…: a tool into the cache, built fast rather than small. A registry mirror can lack a crate
# of the tool's own lock file; the tool is then built with the newest crates that the mirror has, as the message says.
cargo_install() {
  local root=$1 work log status=0
  shift
  work=$(mktemp -d)
  local build=(env -u RUSTFLAGS CARGO_TARGET_DIR="$work" CARGO_PROFILE_RELEASE_LTO=off
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false)
  quietly "cargo install --locked $*" "${build[@]}" cargo install --locked --root "$root" "$@" || status=$?
  log=$(log_file "cargo install --locked $*")
  if ((status)) && grep -q 'failed to select a version.*(locked to' "$log"; then
    status=0
    say "$1: its lock file cannot be met by this registry; building with the newest crates it has"
    quietly "cargo install $*" "${build[@]}" cargo install --root "$root" "$@" || status=$?
  fi
  rm -rf "$work"
  return "$status"
}
