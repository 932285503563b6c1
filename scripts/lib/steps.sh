# shellcheck shell=bash
# Named, timed steps of scripts/check and scripts/test: the output of each step is shown live, and the first failure ends the run.
# A table of times is printed at the end; in a log, the last lines of a step that failed follow it, since often only the end of a
# log is kept.

STEPS_START=$(now_us)
STEPS_TABLE=()
STEPS_OUTPUT=$(mktemp)
trap 'end_group; rm -rf "$STEPS_OUTPUT" "${BACKGROUND:-}"' EXIT

# step NAME COMMAND…
step() {
  local name=$1 start status=0
  shift
  printf '\n== %s\n' "$name"
  start=$(now_us)
  if [[ -t 1 ]]; then
    "$@" || status=$?
  else
    # Not a pipe, which would wait for every process that inherits it.
    "$@" > >(tee "$STEPS_OUTPUT") 2>&1 || status=$?
  fi
  STEPS_TABLE+=("$(printf '%7s s  %s' "$(seconds_since "$start")" "$name")")
  if ((status != 0)); then
    printf '== FAILED: %s (status %d): %s\n' "$name" "$status" "$*" >&2
    # Steps in the background must not outlive the run; they may have failed too.
    background_ended || true
    steps_table
    # `tee` may be a moment late.
    sleep 1
    printf '\n== FAILED: %s\n' "$name"
    tail -n 15 "$STEPS_OUTPUT"
    exit "$status"
  fi
}

# steps_in_background FUNCTION: its steps run at the same time as those that follow, until steps_joined. For a build that uses the
# processor which the others leave free, and no folder of theirs.
steps_in_background() {
  BACKGROUND=$(mktemp -d)
  in_background background_steps "$1" "$BACKGROUND" >"$BACKGROUND/output" 2>&1
}

background_steps() {
  local folder=$2
  STEPS_OUTPUT=$folder/last
  BACKGROUND=''
  STEPS_TABLE=()
  "$1"
  printf '%s\n' "${STEPS_TABLE[@]}" >"$folder/table"
}

# steps_joined: waits for the steps in the background, shows their output, and ends the run if one of them failed.
steps_joined() {
  local status=0
  background_ended || status=$?
  if ((status != 0)); then
    steps_table
    printf '\n== FAILED: a step in the background; its output is above\n'
    exit "$status"
  fi
}

# background_ended: waits for the steps in the background, if there are any, and shows their output. Returns their status.
background_ended() {
  local status=0 lines=()
  [[ -n ${BACKGROUND:-} ]] || return 0
  group_ended || status=$?
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
