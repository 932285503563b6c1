# shellcheck shell=bash
# Binaries of the servers that tests and the demo start on free ports and in temporary folders. Starts,
# stops and configures no service of the machine.

# Debian 12 has no Consul; this of Debian 11 runs on it. It is for this architecture.
CONSUL_PACKAGE=pool/main/c/consul/consul_1.8.7+dfsg1-2+b3_amd64.deb
CONSUL_SUM=e4e888bba104daba1d9161f49bfc52649a7e4efd45b1a7ead5bc54f2cb9c89d9

servers_packages() {
  local want=want_package
  [[ ${LEASEHOLD_SERVERS_OPTIONAL:-} == 1 ]] && want=want_optional_package
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || have postgres || "$want" postgresql
  have pgbouncer || [[ -x /usr/sbin/pgbouncer ]] || "$want" pgbouncer
  have redis-server || "$want" redis-server
  have etcd || "$want" etcd-server
  have etcdctl || "$want" etcd-client
  [[ -f /usr/share/java/zookeeper.jar ]] || "$want" zookeeper
  have java || "$want" default-jre-headless
  have prometheus-alertmanager || "$want" prometheus-alertmanager
}

servers_tools() {
  have consul && return
  if [[ $(dpkg --print-architecture 2>/dev/null) == amd64 ]]; then
    quietly consul fetch_program consul "$CONSUL_PACKAGE" "$CONSUL_SUM" version && return
  fi
  say 'continuing without consul: the demo runs without it, and the tests that start it will fail'
}
