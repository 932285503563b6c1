"""One `Lock` of redis-py.

Arguments: "redis-py", the server's port, the name, the seconds of its timeout (0: none). Prints "waiting", then "held" once
it holds the lock. Commands on standard input: "release", "extend" print "done" or the type of the exception.
"""

import sys

import redis

_, port, name, seconds = sys.argv[1:]
lock = redis.Redis(port=int(port)).lock(name, timeout=int(seconds) or None)
print("waiting", flush=True)
lock.acquire()
print("held", flush=True)
for line in sys.stdin:
    call = lock.release if line.strip() == "release" else lambda: lock.extend(600)
    try:
        call()
        print("done", flush=True)
    except redis.exceptions.RedisError as error:
        print(type(error).__name__, flush=True)
