// A migration of Knex that never ends, or the release of its lock. Arguments: the server's URL, and `run` or `unlock`.
// Prints `migrating` when it holds the lock, `unlocked` after the release.
import knex from "knex";

const [connection, command] = process.argv.slice(2);
const migration = {
  up: () => {
    console.log("migrating");
    return new Promise(() => {});
  },
  down: async () => {},
};
const migrationSource = {
  getMigrations: async () => ["first"],
  getMigrationName: (name) => name,
  getMigration: async () => migration,
};
const database = knex({ client: "pg", connection });
if (command === "unlock") {
  await database.migrate.forceFreeMigrationsLock({ migrationSource });
  console.log("unlocked");
} else {
  await database.migrate.latest({ migrationSource, disableTransactions: true });
}
