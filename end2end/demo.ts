// `leasehold demo`: real servers with real clients, started once per worker, and its JSON API for what a page should show.
import { test as base, expect } from './fixtures';
import { needed, run, type Running } from './server';

interface Workers { demo: Running }
interface Api { api: <T>(path: string) => Promise<T> }

export interface Lock {
  backend: string;
  source: string;
  resource: string;
  ownerId: string | null;
  state: string;
  waiterCount: number | null;
}
export interface Locks { locks: Lock[]; total: number }
export interface Detail extends Lock { waiters: { position: number; ownerId: string }[] }
export interface Backend {
  name: string;
  kind: string;
  address: string;
  status: string;
  locks: number;
  rights: { what: string; allowed: boolean | null; wanted: boolean }[];
}

export const BACKENDS = ['orders-db', 'redis-cache', 'cache-eu', 'etcd-coord'];

export const test = base.extend<Api, Workers>({
  demo: [async ({}, use) => {
    const running = await run(needed('LEASEHOLD_BIN'), ['demo', '--listen', '127.0.0.1:0'], 90_000);
    await use(running);
    await running.stop();
  }, { scope: 'worker', timeout: 120_000 }],

  baseURL: async ({ demo }, use) => use(demo.url),

  api: async ({ demo }, use) => {
    await use(async <T>(path: string) => {
      const answer = await fetch(`${demo.url}/v1/${path}`);
      expect(answer.status, path).toBe(200);
      return await answer.json() as T;
    });
  },
});

export { expect };
export { hydrated, open, openLive, liveBar, rows, accessible, fits, LOOKS, lookAt } from './fixtures';
