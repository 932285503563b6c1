// A migration that never ends. Arguments: the library, the server's URL. Prints the error of a run that fails.
import { Kysely, Migrator, PostgresDialect, sql } from "kysely";
import { runMain } from "node:module";
import { runner } from "node-pg-migrate";
import pg from "pg";
import PgBoss from "pg-boss";
import { migrate } from "postgres-migrations";
import { fileURLToPath } from "node:url";

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
  "pg-boss": () => new PgBoss(databaseUrl).start(),
  prisma: () => {
    // Names of files, which would be downloaded otherwise, and are not used.
    const unused = { PRISMA_QUERY_ENGINE_LIBRARY: "/bin/true", PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true" };
    Object.assign(process.env, unused, { CHECKPOINT_DISABLE: "1", DATABASE_URL: databaseUrl });
    const cli = fileURLToPath(import.meta.resolve("prisma/build/index.js"));
    process.argv.splice(1, Infinity, cli, "migrate", "deploy", "--config", "prisma/prisma.config.mjs");
    runMain();
  },
};
try {
  await runs[library]();
} catch (error) {
  console.log(error.message);
  process.exit();
}
