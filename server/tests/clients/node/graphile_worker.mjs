// A worker of graphile-worker whose job never ends. Argument: the server's URL. Prints `ready`, then
// `started` when it has a job; adds a job at the line `add`.
import { createInterface } from "node:readline";
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const [connectionString] = process.argv.slice(2);
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
await run({
  connectionString,
  logger,
  concurrency: 1,
  pollInterval: 200,
  noHandleSignals: true,
  taskList: {
    close: () => {
      console.log("started");
      return new Promise(() => {});
    },
  },
});
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "add") await utils.addJob("close", {});
}
