"""A start of DBOS, which creates its tables. Argument: the server's URL."""

import sys

from dbos import DBOS, DBOSConfig

DBOS(
    config=DBOSConfig(
        name="orders",
        system_database_url=sys.argv[1],
        executor_id="worker-1",
        run_admin_server=False,
        log_level="CRITICAL",
    )
)
DBOS.launch()
