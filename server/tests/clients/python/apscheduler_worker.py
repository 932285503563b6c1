"""A scheduler of APScheduler 4 whose jobs never end.

Arguments: the server's URL, its identity, the seconds of a lease. Prints "ready", then "started" for each job. Commands on
standard input: "add"; "cleanup", which the scheduler otherwise does at its start and every 15 minutes.
"""

import asyncio
import sys

from apscheduler import AsyncScheduler
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from sqlalchemy import create_engine


async def close() -> None:
    print("started", flush=True)
    await asyncio.Event().wait()


async def main() -> None:
    url, identity, lease = sys.argv[1:]
    store = SQLAlchemyDataStore(create_engine("postgresql+psycopg://" + url.split("://")[1]))
    async with AsyncScheduler(
        store, identity=identity, lease_duration=float(lease), cleanup_interval=None
    ) as scheduler:
        await scheduler.configure_task("close", func=close, max_running_jobs=9)
        await scheduler.start_in_background()
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip() == "add":
                await scheduler.add_job("close")
            else:
                await scheduler.cleanup()


asyncio.run(main())
