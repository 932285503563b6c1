# shellcheck shell=bash
# Peers that only `make bench` uses: ZooKeeper, and a Java for it. Never started here.

peers_packages() {
  [[ -f /usr/share/java/zookeeper.jar ]] || want_package zookeeper
  have java || want_package default-jre-headless
}

peers_tools() { :; }
