"""A worker of PgQueuer whose jobs never end.

Arguments: the server's URL, and the seconds without a heartbeat after which it picks a job of another worker. Prints
"ready", then "started ID" for each job. Commands on standard input: "add", "cancel ID".
"""

import asyncio
import sys
from datetime import timedelta

import psycopg
from pgqueuer.db import PsycopgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries


async def connect(url: str) -> Queries:
    return Queries(PsycopgDriver(await psycopg.AsyncConnection.connect(url, autocommit=True)))


async def main() -> None:
    url, heartbeat_timeout = sys.argv[1:]
    queries = await connect(url)
    if not await queries.schema_is_installed():
        await queries.install()
    manager = QueueManager(await connect(url))

    @manager.entrypoint("close")
    async def close(job: Job) -> None:
        print("started", job.id, flush=True)
        await asyncio.Event().wait()

    worker = asyncio.create_task(
        manager.run(
            dequeue_timeout=timedelta(milliseconds=200),
            heartbeat_timeout=timedelta(seconds=float(heartbeat_timeout)),
        )
    )
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command, *ids = line.split()
        if command == "add":
            await queries.enqueue("close", None)
        else:
            await queries.mark_job_as_cancelled([int(ids[0])])
    await worker


asyncio.run(main())
