# shellcheck shell=bash
# Named, timed steps of scripts/check and scripts/test: the output of each step is shown live, the first
# failure ends the run, and a table of times is printed last.

STEPS_START=$(now_us)
STEPS_TABLE=()

# step NAME COMMAND…
step() {
  local name=$1 start status=0
  shift
  printf '\n== %s\n' "$name"
  start=$(now_us)
  "$@" || status=$?
  STEPS_TABLE+=("$(printf '%7s s  %s' "$(seconds_since "$start")" "$name")")
  if ((status != 0)); then
    printf '== FAILED: %s (status %d): %s\n' "$name" "$status" "$*" >&2
    steps_table
    exit "$status"
  fi
}

steps_table() {
  printf '\n'
  printf '%s\n' "${STEPS_TABLE[@]}"
  printf '%7s s  in all\n' "$(seconds_since "$STEPS_START")"
}
