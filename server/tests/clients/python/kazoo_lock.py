"""Holds one lock with kazoo until a line comes on standard input.

Arguments: hosts, kind (Lock, ReadLock, WriteLock, Election), path, identifier. Prints "held" once it holds the lock, then
"released" after it has let it go, whatever became of its node.
"""

import sys

from kazoo.client import KazooClient


def main() -> None:
    hosts, kind, path, identifier = sys.argv[1:]
    client = KazooClient(hosts=hosts)
    client.start()
    if kind == "Election":
        client.Election(path, identifier).run(hold)
    else:
        with getattr(client, kind)(path, identifier):
            hold()
    print("released", flush=True)
    client.stop()


def hold() -> None:
    print("held", flush=True)
    sys.stdin.readline()


main()
