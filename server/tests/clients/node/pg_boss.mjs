// A worker of pg-boss. Argument: the server's URL. Prints `ready`, then `started ID` when it has a job, and `ended` when the
// job has ended. Commands on standard input: `add`, `cancel ID`, and `end`, at which a job ends.
import { createInterface } from "node:readline";
import PgBoss from "pg-boss";

const boss = new PgBoss(process.argv[2]);
await boss.start();
await boss.createQueue("close");
let end;
await boss.work("close", { pollingIntervalSeconds: 0.5 }, async ([job]) => {
  console.log("started", job.id);
  await new Promise((resolve) => (end = resolve));
});
boss.on("wip", () => {});
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [command, id] = line.split(" ");
  if (command === "add") await boss.send("close", {});
  else if (command === "cancel") await boss.cancel("close", id).then(() => console.log("cancelled"));
  else end();
}
