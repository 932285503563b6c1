// A migration that never ends. Arguments: the library, the server's URL. Prints the error of a run that fails.
import { Kysely, Migrator, PostgresDialect, sql } from "kysely";
import { runner } from "node-pg-migrate";
import pg from "pg";
import { migrate } from "postgres-migrations";

const [library, databaseUrl] = process.argv.slice(2);
const silent = () => {};
const runs = {
  "node-pg-migrate": () =>
    runner({ databaseUrl, dir: "migrations", direction: "up", migrationsTable: "done", log: silent }),
  "postgres-migrations": async () => {
    const client = new pg.Client(databaseUrl);
    await client.connect();
    await migrate({ client }, "migrations");
  },
  kysely: async () => {
    const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: databaseUrl }) }) });
    const close = { up: (db) => sql`SELECT pg_sleep(3600)`.execute(db) };
    const { error } = await new Migrator({ db, provider: { getMigrations: async () => ({ close }) } }).migrateToLatest();
    if (error) throw error;
  },
};
try {
  await runs[library]();
} catch (error) {
  console.log(error.message);
  process.exit();
}
