"""Two workflows of DBOS, one from a queue, that wait before their only step.

Argument: the server's URL. Prints "started ID" for each, and at a line on standard input the error of the direct one.
"""

import sys
import threading

from dbos import DBOS, DBOSConfig, SetWorkflowID

DBOS(
    config=DBOSConfig(
        name="orders",
        system_database_url=sys.argv[1],
        executor_id="worker-1",
        run_admin_server=False,
        log_level="CRITICAL",
    )
)


@DBOS.step()
def step() -> None:
    pass


@DBOS.workflow()
def close(is_direct: bool) -> None:
    print("started", DBOS.workflow_id, flush=True)
    if is_direct:
        sys.stdin.readline()
    else:
        threading.Event().wait()
    step()


DBOS.launch()
DBOS.register_queue("invoices")
with SetWorkflowID("queued"):
    DBOS.enqueue_workflow("invoices", close, False)
try:
    with SetWorkflowID("direct"):
        close(True)
except BaseException as error:
    print(type(error).__name__, flush=True)
