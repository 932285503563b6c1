// Prisma's schema engine of its package, in WebAssembly: the other one is downloaded from a server of its own.
import { PrismaPg } from "@prisma/adapter-pg";
import { defineConfig } from "prisma/config";

export default defineConfig({
  experimental: { adapter: true },
  engine: "js",
  schema: "schema.prisma",
  adapter: async () => new PrismaPg({ connectionString: process.env.DATABASE_URL }),
});
