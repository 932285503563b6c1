// Fencing rejections of a real writer that lost its lock: navigation, filters, link to the lock's timeline.
import { accessible, expect, fits, checkAppearance, test } from '../../demo';

test('a writer that lost its lock is listed and linked to its timeline', async ({ page, forgive }) => {
  test.setTimeout(120_000);
  await expect(async () => {
    await page.goto('/fencing');
    await expect(page.getByRole('heading', { level: 1 })).toContainText(/\d writes? (of \d+ owners? )?rejected/, { timeout: 500 });
  }).toPass({ timeout: 90_000 });
  await expect(page.locator('#over-time svg [href]')).not.toHaveCount(0);
  await expect(page.getByRole('group', { name: 'age of the data' })).toContainText('Live');
  await checkAppearance(page, 'fencing');
  await page.locator('#stale').getByRole('link').first().click();
  await expect(page).toHaveURL(/owner=/);
  await expect(page.locator('#rejections tbody tr').first()).toBeVisible();
  await page.locator('#rejections tbody tr').first().locator('.res').click();
  // Between two writers the lock is free for a while. Its page shows the next holder without a reload.
  forgive(/404/);
  await expect(page.locator('#ownership')).toBeVisible({ timeout: 60_000 });
});

test('time labels below the bars do not touch on a phone, whose first one is a date at midnight', async ({ page }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 390, height: 844 });
  const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  await expect(async () => {
    await page.goto(`/fencing?from=${day}T00:00:00Z&to=${day}T06:50:00Z`);
    await expect(page.locator('#over-time .bars')).toBeVisible({ timeout: 500 });
  }).toPass({ timeout: 90_000 });
  const gaps = await page.locator('#over-time .bars .axis + text').evaluateAll((texts) => {
    const boxes = texts.map((text) => text.getBoundingClientRect()).filter((box) => box.width > 0);
    return boxes.slice(1).map((box, before) => box.left - (boxes[before]?.right ?? 0));
  });
  expect(gaps.length).toBeGreaterThan(1);
  expect(Math.min(...gaps)).toBeGreaterThan(4);
});

test('g and a letter lead to each page', async ({ page }) => {
  for (const [letter, path] of [['f', '/fencing'], ['c', '/contention'], ['a', '/alerts'], ['s', '/settings']]) {
    await page.goto('/locks');
    // Before hydration the keys have no listener.
    await expect(async () => {
      await page.keyboard.press('g');
      await page.keyboard.press(letter);
      await expect(page).toHaveURL(new RegExp(`${path}(/|$)`), { timeout: 500 });
    }).toPass();
  }
});

test('the navigation leads to the rejections, with range and filters in the URL', async ({ page }) => {
  await page.goto('/locks');
  await page.getByRole('navigation', { name: 'pages', exact: true }).getByRole('link', { name: 'Fencing' }).click();
  await expect(page).toHaveURL('/fencing');
  await page.getByRole('navigation', { name: 'time range' }).getByRole('link', { name: '7 d' }).click();
  await expect(page).toHaveURL(/range=7d/);
  await page.getByLabel('Resource begins with').fill('no such name');
  await page.getByRole('button', { name: 'Search' }).click();
  await expect(page).toHaveURL(/prefix=no(\+|%20)such.*range=7d/);
  await expect(page.locator('#rejections')).toContainText('No matching rejections');
  await accessible(page);
  await fits(page);
});

test.describe('without a script', () => {
  test.use({ javaScriptEnabled: false });

  test('the page is complete', async ({ page }) => {
    await page.goto('/fencing?range=1h');
    await expect(page.locator('#grants tbody tr').first()).toBeVisible();
    await expect(page.getByRole('navigation', { name: 'time range' }).locator('[aria-current]')).toHaveText('1 h');
  });
});
