// Waits for one lock with ioredis-mutex, and prints `held` once it has it. Arguments: the server's URL, the lock's name.
// The library reads the URL from the environment when it is loaded.
process.env.REDIS_URL = process.argv[2];
const { default: mutex } = await import("ioredis-mutex");

console.log("waiting");
mutex.runWithMutex(process.argv[3], () => {
  console.log("held");
  return new Promise(() => {});
});
