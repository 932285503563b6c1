# shellcheck shell=bash
# Owns the monitoring that the tests of our telemetry speak to: Prometheus with its OTLP receiver, which is 3 or newer, and
# promtool. Never started here.

monitoring_packages() { :; }

# is_newer_prometheus PROGRAM: whether it is 3 or newer.
is_newer_prometheus() {
  local version
  have "$1" || return
  version=$("$1" --version 2>&1 | sed -n 's/^[a-z]*, version \([0-9]*\).*/\1/p;q')
  ((${version:-0} >= 3))
}

monitoring_tools() {
  { is_newer_prometheus prometheus && is_newer_prometheus promtool; } && return
  newer_programs prometheus promtool ||
    die 'Prometheus 3 and promtool could not be had from Debian' \
      "put prometheus and promtool, 3 or newer (https://prometheus.io/download), into $CACHE/bin"
  { is_newer_prometheus prometheus && is_newer_prometheus promtool; } ||
    die "the Prometheus in $CACHE/bin does not run here" 'prometheus --version'
}
