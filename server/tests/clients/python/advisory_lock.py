"""One advisory lock of Postgres by a library.

Arguments: the library, the server's URL, the name. Prints "waiting", then "held" once it holds the lock. At a line on standard
input it prints "connected" or "disconnected" for its session.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator

library, url, name = sys.argv[1:]
ALCHEMY = "postgresql+psycopg://" + url.split("://")[1]


@contextlib.contextmanager
def django_pglock() -> Iterator[Callable[[], object]]:
    import django
    import psycopg
    from django.conf import settings
    from django.db import connection

    info = psycopg.conninfo.conninfo_to_dict(url)
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": info["dbname"], "USER": info["user"]}
    database |= {"HOST": info["host"], "PORT": info["port"]}
    settings.configure(DATABASES={"default": database}, INSTALLED_APPS=["pgactivity", "pglock"])
    django.setup()
    import pglock

    with pglock.advisory(name):
        yield lambda: connection.cursor().execute("SELECT 1")


@contextlib.contextmanager
def pals() -> Iterator[Callable[[], object]]:
    import pals as library

    app, lock_name = name.split(".")
    lock = library.Locker(app, ALCHEMY).lock(lock_name)
    if not lock.acquire():
        raise TimeoutError
    yield lambda: lock.conn.exec_driver_sql("SELECT 1")


@contextlib.contextmanager
def sqlalchemy_dlock() -> Iterator[Callable[[], object]]:
    from sqlalchemy import create_engine
    from sqlalchemy_dlock import create_sadlock

    with create_engine(ALCHEMY).connect() as connection, create_sadlock(connection, name):
        yield lambda: connection.exec_driver_sql("SELECT 1")


@contextlib.contextmanager
def pgqueuer() -> Iterator[Callable[[], object]]:
    import psycopg
    from pgqueuer.db import PsycopgDriver
    from pgqueuer.queries import Queries

    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(psycopg.AsyncConnection.connect(url, autocommit=True))
    loop.run_until_complete(Queries(PsycopgDriver(connection)).schema_lock().__aenter__())
    yield lambda: loop.run_until_complete(connection.execute("SELECT 1"))


print("waiting", flush=True)
with globals()[library]() as ask:
    print("held", flush=True)
    sys.stdin.readline()
    try:
        ask()
        print("connected", flush=True)
    except Exception:
        print("disconnected", flush=True)
    # Without the releases of the libraries, which fail on a lost session.
    sys.stdout.flush()
    os._exit(0)
