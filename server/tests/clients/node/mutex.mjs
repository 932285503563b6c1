// Waits for one lock with ioredis-mutex, and prints `held` once it has it. Argument: the lock's name. REDIS_URL names
// the server.
import mutex from "ioredis-mutex";

console.log("waiting");
mutex.runWithMutex(process.argv[2], () => {
  console.log("held");
  return new Promise(() => {});
});
