"""A worker of Procrastinate whose jobs never end.

Argument: the server's URL. Prints "ready", then "started ID" for each job. Commands on standard input: "defer" adds a job
with the lock "invoices"; "retry ID" and "finish ID" call the job manager.
"""

import asyncio
import datetime
import sys

from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.jobs import Status

app = App(connector=PsycopgConnector(conninfo=sys.argv[1]))


@app.task(name="close", pass_context=True, lock="invoices")
async def close(context: JobContext) -> None:
    print("started", context.job.id, flush=True)
    await asyncio.Event().wait()


async def main() -> None:
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        # A job whose lock is free again is found by polling.
        options = {"fetch_job_polling_interval": 0.2, "install_signal_handlers": False}
        worker = asyncio.create_task(app.run_worker_async(**options))
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            command, *ids = line.split()
            if command == "defer":
                await close.defer_async()
            elif command == "retry":
                now = datetime.datetime.now(datetime.timezone.utc)
                await app.job_manager.retry_job_by_id_async(int(ids[0]), now)
            else:
                await app.job_manager.finish_job_by_id_async(int(ids[0]), Status.FAILED, delete_job=False)
        await worker


asyncio.run(main())
