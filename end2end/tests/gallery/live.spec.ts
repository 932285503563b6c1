// Live, paused and disconnected look different.
import type { Page } from '@playwright/test';
import { expect, hydrated, liveBar, openLive, rows, test } from '../../gallery';

/** A lock whose waiters change with every event of the gallery. */
const CHANGING = '/locks?q=tenant_123:ledger-post';
const waiters = (page: Page) => rows(page).first().locator('.c-w').textContent();

/** Counts the requests of the page. */
function countFetches(page: Page): { fetches: () => number } {
  let fetches = 0;
  page.on('request', (request) => { if (new URL(request.url()).pathname.startsWith('/api/')) fetches += 1; });
  return { fetches: () => fetches };
}

test('a change appears without a reload, is marked, and the row keeps its element', async ({ page }) => {
  await openLive(page, CHANGING);
  const before = await waiters(page);
  await rows(page).first().evaluate((row) => row.setAttribute('data-kept', ''));
  await expect.poll(() => waiters(page)).not.toBe(before);
  await expect(page.locator('tr[data-kept].is-new')).toBeAttached();
  await expect(page.locator('tr[data-kept]')).toHaveCount(1);
});

test('the age of the data is on screen and stays small while live', async ({ page }) => {
  await openLive(page, '/');
  for (const path of ['/', '/locks', '/backends']) {
    await openLive(page, path);
    await expect(liveBar(page)).toContainText(/data [\d.]+\ss old/);
  }
});

test('p pauses without fetches, counts the waiting changes, and p resumes', async ({ page }) => {
  await openLive(page, CHANGING);
  await page.keyboard.press('p');
  await expect(liveBar(page)).toContainText('Paused');
  await page.waitForLoadState('networkidle').catch(() => undefined);
  const { fetches } = countFetches(page);
  const before = await waiters(page);
  await expect(liveBar(page)).toContainText(/[3-9]\schanges waiting/);
  expect(fetches(), 'fetches while paused').toBe(0);
  expect(await waiters(page)).toBe(before);
  await page.keyboard.press('p');
  await expect(liveBar(page)).toContainText('Live');
  await expect(liveBar(page)).not.toContainText('waiting');
  await expect.poll(fetches).toBeGreaterThan(0);
  await expect.poll(() => waiters(page)).not.toBe(before);
});

test('waiting changes can be applied while paused', async ({ page }) => {
  await openLive(page, CHANGING);
  await page.getByRole('button', { name: 'Pause' }).click();
  const { fetches } = countFetches(page);
  await page.getByRole('button', { name: /changes? waiting/ }).click();
  await expect.poll(fetches).toBeGreaterThan(0);
  await expect(liveBar(page)).toContainText('Paused');
});

test('rows keep their places under the pointer while their values change', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await openLive(page, '/locks?sort=-waiters');
  await rows(page).nth(3).hover();
  const order = () => rows(page).locator('.c-res').allTextContents();
  const [before, count] = [await order(), await waiters(page)];
  await expect.poll(() => waiters(page)).not.toBe(count);
  expect(await order()).toEqual(before);
});

for (const [how, patience] of [['off', 5_000], ['silent', 20_000]] as const) {
  test(`with the stream ${how} the page looks disconnected, and live again afterwards`, async ({ page, stream, forgive }) => {
    forgive(/v1\/events/);
    await openLive(page, CHANGING);
    const live = await page.locator('main').evaluate((it) => getComputedStyle(it).filter);
    await stream(how);
    await expect(liveBar(page)).toContainText(/disconnected, \d+\ss/, { timeout: patience });
    // Announced once, not every second.
    await expect(liveBar(page).getByRole('status')).toHaveText('disconnected');
    await expect(page.locator('html')).toHaveClass(/is-cut/);
    expect(await page.locator('main').evaluate((it) => getComputedStyle(it).filter)).not.toBe(live);
    const veil = await page.locator('main').evaluate((it) => getComputedStyle(it, '::after').backgroundImage);
    expect(veil, 'hatched').not.toBe('none');
    // The hatch reaches to the end of the window, also below a single row.
    expect(await page.locator('main').evaluate((it) => it.getBoundingClientRect().bottom - innerHeight)).toBeGreaterThan(-1);
    await page.screenshot({ path: `test-results/appearance/stream-${how}.png` });
    const { fetches } = countFetches(page);
    await stream('on');
    await expect(liveBar(page)).toContainText('Live');
    await expect(page.locator('html')).not.toHaveClass(/is-cut/);
    await expect.poll(fetches, 'fetches after the return').toBeGreaterThan(0);
  });
}

test('a page opened while the stream is refused shows its data and never "Live"', async ({ page, stream, forgive }) => {
  forgive(/v1\/events/);
  await stream('off');
  await page.goto('/locks');
  await hydrated(page);
  await expect(rows(page).first()).toBeVisible();
  await expect(liveBar(page)).toContainText('disconnected');
});

test('one tab has one stream over many pages', async ({ page }) => {
  let streams = 0;
  await page.clock.install();
  page.on('request', (request) => { if (request.url().endsWith('/v1/events')) streams += 1; });
  await openLive(page, '/');
  for (const name of ['Locks', 'Backends', 'Overview']) {
    await page.getByRole('banner').getByRole('link', { name }).click();
    await expect(liveBar(page)).toContainText('Live');
  }
  expect(streams).toBe(1);
  // A hidden tab closes its connection, and is live again as soon as it is shown.
  const hide = (isHidden: boolean) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true });
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
  }, isHidden);
  await hide(true);
  await page.clock.fastForward(31_000);
  await expect(liveBar(page)).toContainText('Not live yet');
  await hide(false);
  await expect(liveBar(page)).toContainText('Live');
  expect(streams).toBe(2);
});
