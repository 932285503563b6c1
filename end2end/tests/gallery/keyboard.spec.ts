// Keyboard: search, rows, pages, pause, list of shortcuts, visible focus.
import type { Page } from '@playwright/test';
import { expect, liveBar, open, openLive, rows, test } from '../../gallery';

const focusedRow = (page: Page) => page.evaluate(() => document.activeElement?.closest('tr')?.getAttribute('data-row') ?? null);

test('slash focuses the page\'s search, and Enter filters the list', async ({ page }) => {
  await open(page, '/locks');
  await page.keyboard.press('/');
  await expect(page.locator('main [data-search]')).toBeFocused();
  await page.keyboard.type('billing-close');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/q=billing-close/);
  await expect(page.locator('.foot')).toContainText('of 3');
  for (const name of await rows(page).locator('.c-res').allTextContents()) expect(name).toContain('billing-close');
});

test('slash on another page focuses the bar\'s search, which leads to the list', async ({ page }) => {
  await open(page, '/backends');
  await page.keyboard.press('/');
  await expect(page.locator('header [data-search]')).toBeFocused();
  await page.keyboard.type('worker-28');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/locks\?q=worker-28/);
  await expect(rows(page)).toHaveCount(2);
});

test('j and k move through the rows, and Enter opens the one in focus', async ({ page }) => {
  await open(page, '/locks?sort=resource&backend=pg-orders');
  await page.keyboard.press('j');
  await expect.poll(() => focusedRow(page)).toBe('0');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await expect.poll(() => focusedRow(page)).toBe('2');
  await page.keyboard.press('k');
  await expect.poll(() => focusedRow(page)).toBe('1');
  const name = (await rows(page).nth(1).locator('.c-res').textContent())?.trim();
  await page.keyboard.press('Enter');
  await expect(page.locator('h1')).toHaveText(name ?? '');
});

test('k stops at the first row and j at the last one', async ({ page }) => {
  await open(page, '/locks?q=billing-close&sort=resource');
  await page.keyboard.press('k');
  await page.keyboard.press('k');
  await expect.poll(() => focusedRow(page)).toBe('0');
  for (let step = 0; step < 5; step += 1) await page.keyboard.press('j');
  await expect.poll(() => focusedRow(page)).toBe('2');
});

test('g and a letter lead to the pages, many times', async ({ page }) => {
  await openLive(page, '/');
  for (let round = 0; round < 3; round += 1) {
    await page.keyboard.press('g');
    await page.keyboard.press('l');
    await expect(page.locator('h1')).toHaveText('Locks');
    await page.keyboard.press('g');
    await page.keyboard.press('b');
    await expect(page).toHaveURL(/\/backends$/);
    await expect(page.locator('h1')).toContainText('backends');
    await page.keyboard.press('g');
    await page.keyboard.press('o');
    await expect(page.locator('h1')).toContainText('need attention');
  }
  await expect(liveBar(page)).toContainText('Live');
});

test('the question mark lists the shortcuts, Escape closes the list and restores the focus', async ({ page }) => {
  await open(page, '/locks');
  await page.keyboard.press('j');
  await expect.poll(() => focusedRow(page)).toBe('0');
  await page.keyboard.press('?');
  const list = page.getByRole('dialog', { name: 'Keys' });
  await expect(list).toBeVisible();
  for (const what of ['search', 'next and previous row', 'open the row', 'pause or resume live updates', 'Overview', 'Contention', 'Backends', 'Alerts']) {
    await expect(list).toContainText(what);
  }
  await page.keyboard.press('Escape');
  await expect(list).toBeHidden();
  await expect.poll(() => focusedRow(page)).toBe('0');
});

test('keys in a field or with Ctrl are no shortcuts', async ({ page }) => {
  await openLive(page, '/locks');
  await page.keyboard.press('/');
  await page.keyboard.type('gpj?');
  await expect(page.locator('main [data-search]')).toHaveValue('gpj?');
  await expect(liveBar(page)).not.toContainText('Paused');
  await page.locator('h1').click();
  await page.keyboard.press('Control+p');
  await expect(liveBar(page)).not.toContainText('Paused');
});

test('Tab reaches the skip link first, every stop shows its focus, and the skip link leads to the page', async ({ page }) => {
  await open(page, '/locks');
  await page.keyboard.press('Tab');
  await expect(page.locator('a.skip')).toBeFocused();
  for (let stop = 0; stop < 30; stop += 1) {
    const seen = await page.evaluate(() => {
      const it = document.activeElement;
      if (!it || it === document.body) return 'nothing has the focus';
      const around = [it, it.parentElement, it.closest('.field, .find, .sel, label')].filter((box) => box !== null) as Element[];
      const isRinged = around.some((box) => {
        const style = getComputedStyle(box);
        return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';
      });
      const { width, height } = it.getBoundingClientRect();
      return isRinged && width > 0 && height > 0 ? 'seen' : `not seen: ${it.outerHTML.slice(0, 120)}`;
    });
    expect(seen).toBe('seen');
    await page.keyboard.press('Tab');
  }
  await page.locator('a.skip').focus();
  await page.keyboard.press('Enter');
  await expect(page.locator('#main')).toBeFocused();
});

test('"Try again" of a failed part passes the focus on to what replaces it', async ({ page, forgive }) => {
  forgive(/Failed to load resource/);
  await openLive(page, '/');
  // Paused, so that no event causes a refetch.
  await page.keyboard.press('p');
  await expect(liveBar(page)).toContainText('Paused');
  await page.route('**/api/inventory*', (route) => route.abort());
  await page.getByRole('banner').getByRole('link', { name: 'Locks' }).click();
  const retry = page.getByRole('button', { name: 'Try again' });
  await expect(retry).toBeVisible();
  await page.unroute('**/api/inventory*');
  await retry.press('Enter');
  await expect(rows(page).first()).toBeVisible();
  await expect(page.getByRole('region', { name: 'list of locks' })).toBeFocused();
});

test('"Try again" of failed rows passes the focus on to the number of rows', async ({ page, forgive }) => {
  forgive(/Failed to load resource/);
  const later = /\/api\/inventory.*cursor/;
  await page.route(later, (route) => route.abort());
  await openLive(page, '/locks?sort=resource&limit=10');
  await page.keyboard.press('p');
  await expect(liveBar(page)).toContainText('Paused');
  const retry = page.locator('.foot').getByRole('button', { name: 'Try again' });
  await expect(retry).toBeVisible();
  // A scroll may fetch rows at this moment and remove the button: the focus passes on in this case too.
  await retry.focus();
  await page.unroute(later);
  await page.keyboard.press('Enter');
  await expect(page.locator('.foot')).not.toContainText('could not be fetched');
  await expect(page.locator('.foot').getByText(/^Rows 1 to/)).toBeFocused();
});

test('the focus passes from the waiting changes to the pause when they are applied', async ({ page }) => {
  await openLive(page, '/locks?q=tenant_123:ledger-post');
  await page.keyboard.press('p');
  await page.getByRole('button', { name: /changes? waiting/ }).press('Enter');
  await expect(page.getByRole('button', { name: 'Resume' })).toBeFocused();
});
