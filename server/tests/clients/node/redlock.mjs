// Holds one lock with the redlock client of npm. Arguments: resource, TTL in milliseconds, then the nodes' ports.
// Prints `held VALUE` or `failed`, then obeys lines on standard input: `extend`, `release`.
import { createInterface } from "node:readline";
import Redis from "ioredis";
import pkg from "redlock";

const Redlock = pkg.default ?? pkg;
const [resource, ttl, ...ports] = process.argv.slice(2);
const nodes = ports.map(
  (port) =>
    new Redis({
      host: "127.0.0.1",
      port: Number(port),
      maxRetriesPerRequest: 1,
      retryStrategy: (times) => Math.min(times * 50, 500),
    }),
);
for (const node of nodes) node.on("error", () => {});
const redlock = new Redlock(nodes, { retryCount: 0, automaticExtensionThreshold: 0 });
redlock.on("error", () => {});

let lock;
try {
  lock = await redlock.acquire([resource], Number(ttl));
  console.log(`held ${lock.value}`);
} catch {
  console.log("failed");
}
for await (const line of createInterface({ input: process.stdin })) {
  try {
    if (line === "extend") lock = await lock.extend(Number(ttl));
    if (line === "release") await lock.release();
    console.log("done");
  } catch {
    console.log("failed");
  }
}
for (const node of nodes) node.disconnect();
