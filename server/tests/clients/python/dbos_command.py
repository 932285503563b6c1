"""The command `dbos` with the given arguments. Prints "done" after it."""

from dbos.cli.cli import app

app(standalone_mode=False)
print("done", flush=True)
