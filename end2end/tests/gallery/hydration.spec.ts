// The wasm loads after the page. Until then the browser itself follows links and history.
import type { Page } from '@playwright/test';
import { expect, hydrated, openLive, rows, test } from '../../gallery';

/** Delays the wasm of the following pages until the returned function is called. */
async function holdWasm(page: Page): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>((resolve) => { release = resolve; });
  await page.route('**/*.wasm', async (route) => {
    await held;
    await route.continue();
  });
  return release;
}

test('back and forward before the page is live show the page of that address', async ({ page }) => {
  await openLive(page, '/locks');
  const name = await rows(page).first().locator('.c-res').innerText();
  await rows(page).first().getByRole('link').first().click();
  await expect(page.locator('h1')).toHaveText(name);
  const release = await holdWasm(page);
  await page.reload({ waitUntil: 'domcontentloaded' });
  // Within one document: the address changes, and nothing is loaded.
  await page.goBack();
  await expect(page).toHaveURL(/\/locks$/);
  await expect(page.locator('h1')).toHaveText(name);
  release();
  await hydrated(page);
  await expect(rows(page).first()).toContainText(name);
  await page.goForward();
  await expect(page.locator('h1')).toHaveText(name);
});

test('a link that is clicked before the page is live opens its page', async ({ page }) => {
  const release = await holdWasm(page);
  await page.goto('/locks', { waitUntil: 'domcontentloaded' });
  const name = await rows(page).first().locator('.c-res').innerText();
  await rows(page).first().getByRole('link').first().click();
  await expect(page.locator('h1')).toHaveText(name);
  await expect(page.locator('html[data-hydrated]')).toHaveCount(0);
  release();
  await hydrated(page);
  await expect(page.locator('h1')).toHaveText(name);
});

test('durations run from the arrival of the page, not of its script', async ({ page }) => {
  const release = await holdWasm(page);
  // A later reading would contain the elapsed time.
  await page.route('**/api/**', () => new Promise(() => {}));
  await page.goto('/locks/builtin/tenant_123:ledger-post?source=lease', { waitUntil: 'domcontentloaded' });
  const age = async () => Number(/as observed ([\d.]+)/.exec(await page.locator('dl.facts').innerText())?.[1]);
  const before = await age();
  await page.waitForFunction(() => {
    const [navigation] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
    return navigation !== undefined && performance.now() - navigation.responseStart > 5_000;
  });
  release();
  await hydrated(page);
  expect(await age()).toBeGreaterThan(before + 3);
});
