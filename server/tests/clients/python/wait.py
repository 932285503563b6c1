"""Waits for one lock with a library, and prints `held` once it has it. Arguments: library, port, name."""

import sys
import time

library, port, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]

if library == "python-redis-lock":
    import redis
    import redis_lock

    lock = redis_lock.Lock(redis.StrictRedis(port=port), name)
    acquire = lambda: lock.acquire(blocking=True)
else:
    import walrus

    # With a TTL of an hour a waiter sleeps for as long between two attempts.
    lock = walrus.Database(port=port).lock(name, ttl=3_600_000)
    acquire = lambda: lock.acquire(block=True)

print("waiting", flush=True)
acquire()
print("held", flush=True)
time.sleep(3_600)
