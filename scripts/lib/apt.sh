# shellcheck shell=bash
# Debian packages: collects the missing packages of all groups and installs them at once. No package may start a
# service, and no service is stopped: it may have another user.

APT_NEEDED=()
APT_OPTIONAL=()
POLICY=/usr/sbin/policy-rc.d

# want_package PACKAGE, want_optional_package PACKAGE
want_package() { APT_NEEDED+=("$1"); }
want_optional_package() { APT_OPTIONAL+=("$1"); }

can_apt() { ((EUID == 0)) && have apt-get; }

apt_command() { printf 'apt-get update && apt-get install -y --no-install-recommends %s' "$*"; }

# While this runs, no package starts its service: 101 means "not allowed" to invoke-rc.d.
apt_with_services_kept_off() {
  local status=0
  if [[ ! -e $POLICY ]]; then
    trap 'rm -f "$POLICY"' EXIT
    printf '#!/bin/sh\n# Put here by Leasehold for the time of one install.\nexit 101\n' >"$POLICY"
    chmod 755 "$POLICY"
    "$@" || status=$?
    rm -f "$POLICY"
    trap - EXIT
  else
    "$@" || status=$?
  fi
  return "$status"
}

apt_get() {
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

# Newly installed services are disabled for the next boot too; earlier ones are left alone.
keep_off_at_boot() {
  local package
  have systemctl || return 0
  for package in "$@"; do
    case $package in
      postgresql) systemctl disable --quiet postgresql.service ;;
      pgbouncer) systemctl disable --quiet pgbouncer.service ;;
      redis-server) systemctl disable --quiet redis-server.service ;;
      etcd-server) systemctl disable --quiet etcd.service ;;
      nginx-light) systemctl disable --quiet nginx.service ;;
      caddy) systemctl disable --quiet caddy.service ;;
      prometheus) systemctl disable --quiet prometheus.service ;;
      prometheus-alertmanager) systemctl disable --quiet prometheus-alertmanager.service ;;
    esac >/dev/null 2>&1 || true
  done
}

apt_install_these() {
  local packages=("$@")
  quietly "apt-get install ${packages[*]}" \
    apt_with_services_kept_off apt_get install -y --no-install-recommends "${packages[@]}" || return
  keep_off_at_boot "${packages[@]}"
}

# Installs all requested packages. Optional packages never fail the run.
apt_install() {
  local all=("${APT_NEEDED[@]}" "${APT_OPTIONAL[@]}") missing
  ((${#all[@]})) || return 0
  missing=$(apt_command "${all[@]}")
  if can_apt; then
    # A broken third-party source does not matter: the packages are Debian's.
    quietly 'apt-get update' apt_get update -qq || say 'continuing with the existing package lists'
    apt_install_these "${all[@]}" && return
    if ((${#APT_NEEDED[@]})); then
      { ((${#APT_OPTIONAL[@]})) && apt_install_these "${APT_NEEDED[@]}"; } ||
        die "packages are missing: ${APT_NEEDED[*]}" "$missing"
    fi
  elif ((${#APT_NEEDED[@]})); then
    die "packages are missing, and installing them takes root and apt: ${all[*]}" "$missing"
  fi
  ((${#APT_OPTIONAL[@]} == 0)) || say "continuing without ${APT_OPTIONAL[*]}; to install them: $missing"
}

# The mirror of apt's own sources, so that no host is named here.
debian_mirrors() {
  apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "Debian" && !seen[$3]++ { print $3 }'
}

# fetch_program PROGRAM PACKAGE SHA256 VERSION_FLAG: /usr/bin/PROGRAM of one package of Debian's pool, which need not be of
# this release, into the tool cache. Nothing else of the package is installed.
fetch_program() {
  local program=$1 package=$2 sum=$3 flag=$4 work mirror status=1
  work=$(mktemp -d)
  while read -r mirror; do
    /usr/lib/apt/apt-helper download-file "$mirror$package" "$work/package.deb" "SHA256:$sum" || continue
    dpkg -x "$work/package.deb" "$work/unpacked" &&
      install -D -m 755 "$work/unpacked/usr/bin/$program" "$CACHE/bin/$program" &&
      "$CACHE/bin/$program" "$flag" && status=0
    break
  done < <(debian_mirrors)
  rm -rf "$work"
  return "$status"
}
