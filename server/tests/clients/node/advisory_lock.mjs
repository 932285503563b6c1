// Holds one lock of advisory-lock. Arguments: the server's URL, the lock's name. Prints `held`.
import advisoryLock from "advisory-lock";

const [url, name] = process.argv.slice(2);
await (advisoryLock.default ?? advisoryLock)(url)(name).lock();
console.log("held");
setInterval(() => {}, 60_000);
