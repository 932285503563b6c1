# shellcheck shell=bash
# Owns programs that are wanted newer than this Debian has them: a newer suite's package, fetched by an apt of our own and
# checked against Debian's keys, unpacked into the cache. Installs nothing on the machine.

NEWER_SUITE=forky
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# The mirror that this machine's own apt uses, so that a closed network needs one mirror alone.
debian_mirror() {
  local uri
  uri=$(apt-get indextargets --format '$(REPO_URI) $(CREATED_BY) $(ORIGIN) $(COMPONENT)' |
    awk '$2 == "Packages" && $3 == "Debian" && $4 == "main" { print $1; exit }')
  printf '%s' "${uri:-https://deb.debian.org/debian}"
}

# newer_apt FOLDER COMMAND…: apt with lists and sources of its own.
newer_apt() {
  local folder=$1
  shift
  apt-get -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/sources" -o Dir::State::Lists="$folder/lists" \
    -o Dir::Cache="$folder/cache" -o Acquire::Retries=3 -o APT::Sandbox::User=root "$@"
}

fetch_newer() {
  local folder=$1 package deb
  shift
  mkdir -p "$folder"/{sources,lists/partial,cache/archives/partial,debs}
  # Only the packages' index: what apt would fetch beside it is five times as much.
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\nSigned-By: %s\n' \
    "$(debian_mirror)" "$NEWER_SUITE" "$KEYRING" >"$folder/sources/newer.sources"
  newer_apt "$folder" update -qq || return
  (cd "$folder/debs" && newer_apt "$folder" download "$@") || return
  for deb in "$folder"/debs/*.deb; do dpkg -x "$deb" "$folder/root" || return; done
  for package in "$@"; do install -D -m 755 "$folder/root/usr/bin/$package" "$CACHE/bin/$package" || return; done
}

# newer_programs PROGRAM…: each is the one program of the package of its name.
newer_programs() {
  local folder status=0
  { have apt-get && have dpkg && [[ -r $KEYRING ]]; } || return 1
  folder=$(mktemp -d)
  quietly "apt-get download $* from Debian $NEWER_SUITE" fetch_newer "$folder" "$@" || status=$?
  rm -rf "$folder"
  return "$status"
}
