// No locks, no data and no backends are three different states on each page.
import type { Page } from '@playwright/test';
import { expect, open, rows, test } from '../../gallery';

const PAGES = ['/', '/locks', '/backends'];
/** Claims that a console without data must never make. */
const ALL_IS_WELL = /\bno locks?\b(?! (that can be seen|is known|matches))|no holder|nothing needs attention|\b0\slocks\b|all \d+ backends answer/i;

const said = (page: Page) => page.locator('main').innerText();

test('with every backend live and no locks the pages have an empty state', async ({ page, scene }) => {
  await scene('empty');
  await open(page, '/');
  await expect(page.getByRole('heading', { name: 'Nothing needs attention' })).toBeVisible();
  await expect(page.locator('main')).toContainText('0 locks on 6 backends, all read within');
  await open(page, '/locks');
  await expect(page.getByRole('heading', { name: 'No held locks' })).toBeVisible();
  await expect(page.locator('main')).toContainText('All 6 backends answer, and none of them holds a lock.');
});

test('with every backend down no page claims that there are no locks', async ({ page, scene }) => {
  await scene('down');
  for (const path of PAGES) {
    await open(page, path);
    expect(await said(page), path).not.toMatch(ALL_IS_WELL);
    await expect(page.locator('main'), path).toContainText('down');
  }
  await open(page, '/');
  await expect(page.getByRole('heading', { name: 'No backend answers' })).toBeVisible();
  await expect(page.locator('.blind-backends')).toContainText('pg-legacy: never read, its locks are unknown.');
});

test('locks of a backend that went down stay listed as stale', async ({ page, scene }) => {
  await scene('down');
  await open(page, '/locks');
  await expect(rows(page)).toHaveCount(3);
  for (const row of await rows(page).all()) await expect(row).toHaveClass(/is-stale/);
  const notices = page.getByRole('list', { name: 'backends with incomplete coverage' });
  await expect(notices).toContainText('pg-orders down. No data since this console started');
  await expect(notices).toContainText('etcd-coord');
  await notices.getByRole('link', { name: 'Reason: pg-orders' }).click();
  await expect(page).toHaveURL(/\/backends#pg-orders$/);
  await open(page, '/locks?backend=etcd-coord');
  await expect(notices).toContainText('etcd-coord down. Its 3 locks are listed as last observed');
});

test('a filter on a backend that is down shows no empty list', async ({ page, scene }) => {
  await scene('down');
  await open(page, '/locks?backend=pg-orders');
  expect(await said(page)).not.toMatch(ALL_IS_WELL);
  await expect(page.getByRole('heading', { name: 'No matching known locks' })).toBeVisible();
  await expect(page.locator('main')).toContainText('1 of 1 backends have incomplete coverage');
});

test('just after the start the pages show the first scan in progress', async ({ page, scene }) => {
  await scene('starting');
  for (const path of PAGES) {
    await open(page, path);
    expect(await said(page), path).not.toMatch(ALL_IS_WELL);
    await expect(page.locator('main'), path).toContainText('starting');
  }
  await open(page, '/locks');
  await expect(page.getByRole('heading', { name: 'Reading the backends' })).toBeVisible();
  await open(page, '/');
  await expect(page.getByRole('heading', { name: 'Reading the backends for the first time' })).toBeVisible();
});

test('data appears after the first scan without a reload', async ({ page, scene }) => {
  await scene('starting');
  await open(page, '/locks');
  await expect(page.getByRole('heading', { name: 'Reading the backends' })).toBeVisible();
  await scene('full');
  await expect(rows(page).first()).toContainText('two owners');
});

test('without a backend the pages explain how to add one', async ({ page, scene }) => {
  await scene('unconfigured');
  for (const path of ['/', '/backends']) {
    await open(page, path);
    await expect(page.getByRole('heading', { name: 'No backend is configured' }), path).toBeVisible();
    await expect(page.getByRole('heading', { name: 'Add a backend' }), path).toBeVisible();
  }
  await open(page, '/locks');
  await expect(page.getByRole('heading', { name: 'No backend is configured' })).toBeVisible();
});

test('a list that cannot be refreshed keeps its rows with an error', async ({ page, forgive }) => {
  forgive(/Failed to load resource/);
  await open(page, '/locks');
  await expect(rows(page).first()).toBeVisible();
  await page.route('**/api/inventory*', (route) => route.abort());
  await expect(page.locator('main')).toContainText('Refresh failed');
  await expect(rows(page).first()).toBeVisible();
  await page.unroute('**/api/inventory*');
  await expect(page.locator('main')).not.toContainText('Refresh failed');
});
