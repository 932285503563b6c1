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
    # A step in the background must not outlive the run.
    wait
    exit "$status"
  fi
}

# steps_in_background FUNCTION: its steps run at the same time as those that follow, until steps_joined. For a build that uses the
# processor which the others leave free, and no folder of theirs.
steps_in_background() {
  BACKGROUND=$(mktemp -d)
  (
    STEPS_TABLE=()
    "$1"
    printf '%s\n' "${STEPS_TABLE[@]}" >"$BACKGROUND/table"
  ) >"$BACKGROUND/output" 2>&1 &
  BACKGROUND_PID=$!
}

# steps_joined: waits for the steps in the background, shows their output, and ends the run if one of them failed.
steps_joined() {
  local status=0 lines=()
  wait "$BACKGROUND_PID" || status=$?
  cat "$BACKGROUND/output"
  [[ ! -e $BACKGROUND/table ]] || mapfile -t lines <"$BACKGROUND/table"
  rm -rf "$BACKGROUND"
  STEPS_TABLE+=("${lines[@]}")
  if ((status != 0)); then
    steps_table
    exit "$status"
  fi
}

steps_table() {
  printf '\n'
  printf '%s\n' "${STEPS_TABLE[@]}"
  printf '%7s s  in all\n' "$(seconds_since "$STEPS_START")"
}
