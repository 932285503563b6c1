// The list's state is in its URL: it survives a reload, and back and forward restore it.
import type { Page } from '@playwright/test';
import { expect, open, openLive, rows, test } from '../../gallery';

const names = (page: Page) => rows(page).locator('.c-res').allTextContents();
const foot = (page: Page) => page.locator('.foot');

test('filters, state, prefix and order are in the URL and survive a reload', async ({ page }) => {
  await openLive(page, '/locks');
  await page.locator('.filters summary', { hasText: 'backend' }).click();
  await page.getByRole('checkbox', { name: 'pg-orders' }).check();
  await expect(page).toHaveURL(/backend=pg-orders/);
  // The open list of backends would cover the states.
  await page.locator('.filters summary', { hasText: 'backend' }).click();
  await page.getByRole('navigation', { name: 'filter by state' }).getByRole('link', { name: /healthy/ }).click();
  await expect(page).toHaveURL(/state=healthy/);
  await page.getByRole('navigation', { name: 'name segments' }).getByRole('link', { name: /tenant_123:/ }).click();
  await expect(page).toHaveURL(/prefix=tenant_123:/);
  await page.getByRole('columnheader', { name: 'resource' }).getByRole('link').click();
  await expect(page).toHaveURL(/sort=resource/);
  const wanted = ['tenant_123:billing-export:2026-04', 'tenant_123:tax-report:2026-q1'];
  await expect.poll(() => names(page)).toEqual(wanted);
  await page.reload();
  expect(await names(page)).toEqual(wanted);
  await expect(page.getByRole('columnheader', { name: 'resource' })).toHaveAttribute('aria-sort', 'ascending');
  await expect(page.locator('.filters summary', { hasText: 'backend' })).toContainText('pg-orders');
});

test('back and forward restore every step with its rows', async ({ page }) => {
  await openLive(page, '/locks');
  const steps = [{ url: page.url(), count: / of 44/ }];
  await open(page, '/locks?backend=redis-cache');
  await expect(foot(page)).toContainText(/ of 19/);
  steps.push({ url: page.url(), count: / of 19/ });
  await page.getByRole('navigation', { name: 'filter by state' }).getByRole('link', { name: /no TTL/ }).click();
  await expect(foot(page)).toContainText(/ of 1,/);
  steps.push({ url: page.url(), count: / of 1,/ });
  await rows(page).first().getByRole('link').click();
  await expect(page.locator('h1')).toHaveText('lock:nightly-export');
  for (const step of steps.toReversed()) {
    await page.goBack();
    await expect(page).toHaveURL(step.url);
    await expect(foot(page)).toContainText(step.count);
  }
  for (const step of steps.slice(1)) {
    await page.goForward();
    await expect(page).toHaveURL(step.url);
    await expect(foot(page)).toContainText(step.count);
  }
  await page.goForward();
  await expect(page.locator('h1')).toHaveText('lock:nightly-export');
});

test('owner and safety class filter the list, and one click clears all', async ({ page }) => {
  await openLive(page, '/locks');
  await page.locator('.filters summary', { hasText: 'owner' }).click();
  await page.getByRole('textbox', { name: 'exactly this owner' }).fill('worker-2');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/owner=worker-2/);
  await expect.poll(() => names(page)).toHaveLength(2);
  await page.getByLabel('safety class').selectOption('efficiency');
  await expect(page).toHaveURL(/safety=efficiency/);
  await expect(page.getByRole('heading', { name: /match/ })).toBeVisible();
  await page.getByRole('link', { name: 'Clear filters' }).click();
  await expect(page).toHaveURL(/\/locks$/);
  await expect(foot(page)).toContainText('of 44');
});

test('Escape closes a choice and leaves the focus on it', async ({ page }) => {
  await openLive(page, '/locks');
  const choice = page.locator('.filters summary', { hasText: 'owner' });
  await choice.press('Enter');
  const field = page.getByRole('textbox', { name: 'exactly this owner' });
  await field.press('Escape');
  await expect(field).toBeHidden();
  await expect(choice).toBeFocused();
});

test('an invalid URL names its field and links to the list', async ({ page, forgive }) => {
  forgive(/status of 400/);
  const answer = await page.goto('/locks?state=broken');
  expect(answer?.status()).toBe(400);
  await expect(page.getByRole('heading', { name: 'Invalid filter "state"' })).toBeVisible();
  await page.getByRole('link', { name: 'All locks' }).click();
  await expect(rows(page).first()).toBeVisible();
});

test('between list and lock the page requests only data that it shows', async ({ page }) => {
  await openLive(page, '/locks');
  const refused: string[] = [];
  page.on('response', (response) => { if (response.status() >= 400) refused.push(response.url()); });
  for (let round = 0; round < 3; round += 1) {
    await rows(page).nth(round).getByRole('link').click();
    await expect(page.locator('.hero h1')).toBeVisible();
    await page.getByRole('navigation', { name: 'breadcrumb' }).getByRole('link', { name: 'Locks' }).click();
    await expect(rows(page).first()).toBeVisible();
  }
  expect(refused).toEqual([]);
});
