# shellcheck shell=bash
# Owns the monitoring that the tests of our telemetry speak to: Prometheus, and promtool in the same package. Never started here.

monitoring_packages() {
  { have prometheus && have promtool; } || want_package prometheus
}

monitoring_tools() { :; }
