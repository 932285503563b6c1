// The questions of an on-call engineer, each from the overview to its answer in at most two steps: with the mouse, on a phone,
// and with the keyboard alone. Times are printed, not asserted: machines differ.
import type { Locator, Page } from '@playwright/test';
import { expect, openLive, test } from '../../demo';

type Way = 'mouse' | 'phone' | 'keyboard';
const WAYS: Way[] = ['mouse', 'phone', 'keyboard'];

/** Steps of one path: a click, a tap, or keys that end with Enter or lead to a page. */
class Steps {
  taken = 0;
  constructor(readonly page: Page, readonly way: Way) {}

  async follow(link: Locator): Promise<void> {
    this.taken += 1;
    if (this.way !== 'keyboard') return await link.click();
    await tabTo(this.page, link);
    await this.page.keyboard.press('Enter');
  }

  /** A page of the navigation; `key` follows g. */
  async open(name: string, key: string): Promise<void> {
    if (this.way === 'keyboard') {
      this.taken += 1;
      await this.page.keyboard.press('g');
      await this.page.keyboard.press(key);
      return;
    }
    const nav = this.page.getByRole('navigation', { name: this.way === 'phone' ? 'pages, below' : 'pages', exact: true });
    const link = nav.getByRole('link', { name: new RegExp(`^${name}`) });
    if (this.way === 'phone' && !await link.isVisible()) await this.follow(nav.getByRole('button', { name: 'More' }));
    await this.follow(link);
  }
}

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let presses = 0; presses < 80; presses += 1) {
    if (await target.evaluate((it) => it === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error('80 presses of Tab do not reach it');
}

const facts = (page: Page) => page.locator('dl.facts');
const worst = (page: Page) => page.locator('table.worklist tbody').first();

const QUESTIONS: Record<string, (steps: Steps) => Promise<void>> = {
  'which lock is in trouble, and why': async ({ page }) => {
    await expect(worst(page).locator('.c-res')).toHaveText(/\w/);
    await expect(worst(page).locator('.c-why bdi')).toHaveText(/\w{2,}/);
  },
  'who holds it, since when, does it renew, how long is left, and is it safe to break': async (steps) => {
    const { page } = steps;
    const name = await worst(page).locator('.c-res').textContent();
    await steps.follow(worst(page).getByRole('link').first());
    await expect(page.locator('h1')).toHaveText(name ?? '');
    for (const fact of ['held by', 'since', 'renewing', 'held until, as observed', 'fencing token', 'safety class']) {
      await expect(facts(page).locator('dt', { hasText: fact }).first()).toBeVisible();
    }
    await expect(page.getByRole('list', { name: 'states' })).toContainText('Reason: ');
  },
  'what happens if I break it': async (steps) => {
    const { page } = steps;
    await steps.follow(worst(page).getByRole('link').first());
    await steps.follow(page.getByRole('link', { name: /^Unlock/ }).first());
    await expect(page).toHaveURL(/\/unlock\//);
    await expect(page.getByRole('heading', { name: 'Lock to release' })).toBeVisible();
  },
  'which alerts fire, and what does the runbook say': async (steps) => {
    const { page } = steps;
    await steps.open('Alerts', 'a');
    await expect(page).toHaveURL(/\/alerts/);
    await steps.follow(page.getByRole('link', { name: /runbook/i }).first());
    await expect(page).toHaveURL(/\/docs\/alerts#/);
  },
  'where is the waiting': async (steps) => {
    await steps.open('Contention', 'c');
    await expect(steps.page).toHaveURL(/\/contention/);
    await expect(steps.page.getByRole('heading', { name: /^Top prefixes/ })).toBeVisible();
  },
  'who unlocked it, and why': async (steps) => {
    await steps.open('Audit', 'u');
    await expect(steps.page).toHaveURL(/\/audit/);
    await expect(steps.page.getByRole('table').first()).toContainText(/signed in|sign/i);
  },
  'which backend can we not see': async (steps) => {
    const strip = steps.page.locator('ul.strip > li').first();
    await expect(strip).toContainText(/polled every/);
    await steps.open('Backends', 'b');
    await expect(steps.page).toHaveURL(/\/backends/);
    await expect(steps.page.getByRole('heading', { level: 1 })).toContainText('backends');
  },
};

for (const way of WAYS) {
  test(`by ${way}, each on-call question is answered in two steps`, async ({ page }) => {
    test.setTimeout(180_000);
    if (way === 'phone') await page.setViewportSize({ width: 390, height: 844 });
    const times: string[] = [];
    for (const [question, answer] of Object.entries(QUESTIONS)) {
      await test.step(question, async () => {
        await openLive(page, '/');
        await expect(worst(page)).toBeVisible();
        const steps = new Steps(page, way);
        const begun = Date.now();
        await answer(steps);
        expect(steps.taken, question).toBeLessThanOrEqual(2);
        times.push(`${question}: ${Date.now() - begun} ms`);
      });
    }
    console.log(`by ${way}\n  ${times.join('\n  ')}`);
  });
}
