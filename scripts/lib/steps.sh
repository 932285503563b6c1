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
    # Steps in the background must not outlive the run; they may have failed too.
    background_ended || true
    steps_table
    exit "$status"
  fi
}

# steps_in_background FUNCTION: its steps run at the same time as those that follow, until steps_joined. For a build that uses the
# processor which the others leave free, and no folder of theirs.
steps_in_background() {
  BACKGROUND=$(mktemp -d)
  local table=$BACKGROUND/table
  (
    BACKGROUND=''
    STEPS_TABLE=()
    "$1"
    printf '%s\n' "${STEPS_TABLE[@]}" >"$table"
  ) >"$BACKGROUND/output" 2>&1 &
  BACKGROUND_PID=$!
}

# steps_joined: waits for the steps in the background, shows their output, and ends the run if one of them failed.
steps_joined() {
  local status=0
  background_ended || status=$?
  if ((status != 0)); then
    steps_table
    exit "$status"
  fi
}

# background_ended: waits for the steps in the background, if there are any, and shows their output. Returns their status.
background_ended() {
  local status=0 lines=()
  [[ -n ${BACKGROUND:-} ]] || return 0
  wait "$BACKGROUND_PID" || status=$?
  cat "$BACKGROUND/output"
  [[ ! -e $BACKGROUND/table ]] || mapfile -t lines <"$BACKGROUND/table"
  STEPS_TABLE+=("${lines[@]}")
  rm -rf "$BACKGROUND"
  BACKGROUND=''
  return "$status"
}

steps_table() {
  printf '\n'
  printf '%s\n' "${STEPS_TABLE[@]}"
  printf '%7s s  in all\n' "$(seconds_since "$STEPS_START")"
}
