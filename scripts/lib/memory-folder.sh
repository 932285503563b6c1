# shellcheck shell=bash
# Where the servers of the tests keep their files, for scripts/test.

# temporary_files_in_memory: sets TMPDIR to a file system in memory, if there is one with room that may hold programs. etcd,
# ZooKeeper and Consul wait for the disk at each commit, and a disk busy with what was just built makes that longer than
# their clients wait.
temporary_files_in_memory() {
  local folder=/dev/shm needed_kb=$((8 * 1024 * 1024)) free_kb available_kb probe
  [[ -z ${TMPDIR:-} && -d $folder && -w $folder ]] || return 0
  free_kb=$(df --output=avail "$folder" | tail -n 1)
  available_kb=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
  ((free_kb >= needed_kb && available_kb >= needed_kb)) || return 0
  probe=$(mktemp "$folder/leasehold-XXXXXX")
  printf '#!/bin/sh\n' >"$probe"
  chmod +x "$probe"
  if "$probe" 2>/dev/null; then export TMPDIR=$folder; fi
  rm -f "$probe"
}
