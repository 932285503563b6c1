// `leasehold demo`: real servers with real clients, started once per worker, and its JSON API for expected page contents.
// The demo's printed link signs in once; every test's browser has that session.
import type { Browser, BrowserContext } from '@playwright/test';
import { test as base, expect } from './fixtures';
import { needed, run, type Running } from './server';

type Session = Awaited<ReturnType<BrowserContext['storageState']>>;
interface Workers { demo: Running & { session: Session } }
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

export const BACKENDS = ['orders-db', 'redis-cache', 'cache-eu', 'payments-redlock', 'etcd-coord', 'zk-plan', 'consul-dc1'];

export const test = base.extend<Api, Workers>({
  // Hang limits, not speed limits: a day's history is simulated by an unoptimized build.
  demo: [async ({ browser }, use) => {
    const running = await run(needed('LEASEHOLD_BIN'), ['demo', '--listen', '127.0.0.1:0'], 280_000);
    await use({ ...running, session: await signIn(browser, running) });
    await running.stop();
  }, { scope: 'worker', timeout: 300_000 }],

  baseURL: async ({ demo }, use) => use(demo.url),

  storageState: async ({ demo }, use) => use(demo.session),

  api: async ({ demo }, use) => {
    const cookie = demo.session.cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
    await use(async <T>(path: string) => {
      const answer = await fetch(`${demo.url}/v1/${path}`, { headers: { cookie } });
      expect(answer.status, path).toBe(200);
      return await answer.json() as T;
    });
  },
});

async function signIn(browser: Browser, { link, url }: Running): Promise<Session> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(link ?? 'about:blank');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`${url}/`);
  const session = await context.storageState();
  await context.close();
  return session;
}

export { expect };
export { hydrated, open, openLive, liveBar, rows, accessible, fits, VIEWPORTS, checkAppearance } from './fixtures';
