// Without script: complete HTML, filter forms, paging links, no live status.
import { expect, liveBar, rows, test } from '../../gallery';

test.use({ javaScriptEnabled: false });

test('every page comes with its data', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('locks need attention');
  await expect(page.locator('table.worklist tbody').first()).toContainText('two owners');
  await page.goto('/locks');
  await expect(rows(page)).toHaveCount(44);
  await page.goto('/backends');
  await expect(page.getByRole('heading', { name: 'redis-cache' })).toBeVisible();
  await page.goto('/locks/builtin/tenant_123:ledger-post?source=lease');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('tenant_123:ledger-post');
  await expect(page.locator('table.wt tbody tr').first()).toContainText('worker-9');
  await expect(page.locator('main time').first()).toHaveText(/\d{2}:\d{2}:\d{2} UTC/);
  await expect(liveBar(page)).toContainText('Not live yet');
});

test('form, facets and name tree filter the list', async ({ page }) => {
  await page.goto('/locks');
  await page.locator('main [data-search]').fill('ledger-post');
  await page.getByRole('button', { name: 'Apply' }).click();
  await expect(page).toHaveURL(/q=ledger-post/);
  await expect(rows(page)).toHaveCount(4);
  await page.getByRole('navigation', { name: 'filter by state' }).getByRole('link', { name: /contended/ }).click();
  await expect(rows(page)).toHaveCount(1);
  await page.goto('/locks');
  await page.getByRole('navigation', { name: 'name segments' }).getByRole('link', { name: /tenant_408:/ }).click();
  await expect(rows(page)).toHaveCount(2);
  await rows(page).first().getByRole('link').click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('tenant_408:invoice-render:88213');
});

test('links lead to the next page of a long list and back', async ({ page, scene }) => {
  await scene('many');
  await page.goto('/locks?sort=resource&q=job-7');
  const names = () => rows(page).locator('.c-res').allTextContents();
  const first = await names();
  await page.getByRole('link', { name: 'Next 100' }).click();
  await expect(page.locator('.foot')).toContainText('Rows 101 to 200');
  const second = await names();
  expect(second.filter((name) => first.includes(name))).toEqual([]);
  expect(second).toHaveLength(100);
  await page.getByRole('link', { name: 'Previous' }).click();
  await expect(page.locator('.foot')).toContainText('Rows 1 to 100');
  expect(await names()).toEqual(first);
});
