# shellcheck shell=bash
# Binaries of the servers that tests and the demo start on free ports and in temporary folders. Starts,
# stops and configures no service of the machine.

servers_packages() {
  local want=want_package
  [[ ${LEASEHOLD_SERVERS_OPTIONAL:-} == 1 ]] && want=want_optional_package
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || have postgres || "$want" postgresql
  have redis-server || "$want" redis-server
  have etcd || "$want" etcd-server
  have etcdctl || "$want" etcd-client
  have prometheus-alertmanager || "$want" prometheus-alertmanager
}

servers_tools() { :; }
