// What every test has: the gallery or the demo, started once per worker, and a page on which any console error,
// hydration warning or failed request fails the test.
import { test as base, expect, type Page } from '@playwright/test';
import AxeBuilder from '@axe-core/playwright';
import { needed, run, type Running } from './server';

interface Workers { gallery: Running; demo: Running }
interface Tests { quiet: void; scene: (name: string) => Promise<void> }

export const test = base.extend<Tests, Workers>({
  gallery: [async ({}, use) => {
    const running = await run(needed('LEASEHOLD_GALLERY'), [], 20_000);
    await use(running);
    await running.stop();
  }, { scope: 'worker' }],

  demo: [async ({}, use) => {
    const running = await run(needed('LEASEHOLD_BIN'), ['demo', '--listen', '127.0.0.1:0'], 60_000);
    await use(running);
    await running.stop();
  }, { scope: 'worker', timeout: 90_000 }],

  scene: async ({ gallery }, use) => {
    const set = async (path: string): Promise<void> => {
      const answer = await fetch(`${gallery.url}/gallery/${path}`, { method: 'POST' });
      expect(answer.status).toBe(204);
    };
    await set('stream/on');
    await use((name) => set(`scene/${name}`));
    await set('stream/on');
    await set('scene/full');
  },

  quiet: [async ({ page }, use) => {
    const faults: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) faults.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
    await use();
    expect(faults).toEqual([]);
  }, { auto: true }],
});

export { expect };

/** Until the browser half has taken over. */
export async function hydrated(page: Page): Promise<void> {
  await expect(page.locator('html[data-hydrated]')).toBeAttached();
}

/** No accessibility violation at all. */
export async function accessible(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.target.join(' ')).join(', ')}`)).toEqual([]);
}

/** Nothing sticks out sideways: a phone never scrolls the page across. */
export async function fits(page: Page): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(over).toBeLessThanOrEqual(0);
}
