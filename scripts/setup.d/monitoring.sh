# shellcheck shell=bash
# Monitoring servers for the telemetry tests: Prometheus with promtool, and VictoriaMetrics, which accepts OTLP and
# answers PromQL, because Debian builds Prometheus without its OTLP receiver. Never started here.

# Debian 12's version is too old for OTLP; these of later releases run on it. The second is a fallback for a point
# release that removes the first from the pool.
VICTORIA_POOL=pool/main/v/victoriametrics
VICTORIA_PINS=(
  '1.112.0+ds1-2 1d3717f1a8ab5bf690271095dd286730f6fb0761cc8c09c0fc8f529c9838f346'
  '1.145.0+ds1-2 c858b5c15b1c3a3872ec7520cddb2bb51fc48d4b61b6b88f05ac7304edb44557'
)

monitoring_packages() {
  { have prometheus && have promtool; } || want_package prometheus
}

monitoring_tools() {
  have victoria-metrics && return
  # The pinned versions are for this architecture.
  if [[ $(dpkg --print-architecture 2>/dev/null) == amd64 ]]; then
    quietly victoria-metrics fetch_victoria && return
  fi
  say 'continuing without victoria-metrics; the test that pushes metrics to it will fail'
}

fetch_victoria() {
  local pin version sum
  for pin in "${VICTORIA_PINS[@]}"; do
    read -r version sum <<<"$pin"
    fetch_program victoria-metrics "$VICTORIA_POOL/victoria-metrics_${version}_amd64.deb" "$sum" -version && return
  done
  return 1
}
