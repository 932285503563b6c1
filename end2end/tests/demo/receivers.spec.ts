// Receivers: the demo's own, one that is added and rejected, a test message with its request and response.
import { expect, fits, checkAppearance, test } from '../../demo';

const PATH = '/alerts/receivers';

test('the settings lead to the receivers, and the demo has a working one', async ({ page }) => {
  await page.goto('/settings');
  await page.getByRole('navigation', { name: 'settings' }).getByRole('link', { name: 'Receivers' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Notifications go to demo-webhook');
  // A screen reader announces changes only in an element that existed before.
  const status = page.getByRole('row', { name: 'demo-webhook' }).getByRole('status');
  await expect(status).toHaveText('');
  await status.evaluate((it) => it.setAttribute('data-kept', ''));
  await page.getByRole('button', { name: 'Test: demo-webhook' }).click();
  await expect(page.getByRole('heading', { name: 'Test delivered to demo-webhook' })).toBeVisible();
  await expect(page.locator('[data-kept]')).toHaveText('Test delivered to demo-webhook');
  await expect(page.getByLabel('request')).toContainText('x-signature: sha256=');
  await expect(page.getByLabel('answer')).toContainText('received, signature valid');
  // The result has the whole width of the table.
  const widths = await page.locator('.receivers, .receivers .trials').evaluateAll((all) => all.map((it) => Math.round(it.getBoundingClientRect().width)));
  expect(widths).toEqual([widths[0], widths[0]]);
  // Its row is marked as a whole under the pointer, the cell with the button too.
  await page.locator('.receivers tbody th').first().hover();
  const row = page.locator('.receivers tbody tr:hover > :not(:has(> .trials)), .receivers tbody tr:hover > td > form');
  await expect(row).toHaveCount(6);
  const marks = await row.evaluateAll((all) => all.map((it) => getComputedStyle(it).backgroundColor));
  expect(new Set(marks).size).toBe(1);
  expect(marks[0]).not.toBe('rgba(0, 0, 0, 0)');
  await checkAppearance(page, 'receivers-test');
});

test('an internal address is rejected at its field, and an unreachable one shows the reason', async ({ page, forgive }) => {
  forgive(/status of 422/);
  await page.goto(PATH);
  const fill = async (url: string) => {
    await page.getByLabel('Name').fill('away');
    await page.getByLabel('Address').fill(url);
    await page.getByLabel('Secret').fill('sixteen bytes at least');
    await page.getByRole('button', { name: 'Add receiver' }).click();
  };
  await fill('https://169.254.169.254/latest');
  await expect(page.getByLabel('Address')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByText('a cloud\'s metadata service')).toBeVisible();
  await checkAppearance(page, 'receivers-refused');
  await fill('http://127.0.0.1:1/');
  await expect(page.getByText('Receiver added')).toBeVisible();
  await page.getByRole('button', { name: 'Test: away' }).click();
  await expect(page.getByRole('heading', { name: 'Test to away failed' })).toBeVisible();
  await page.goto(PATH);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Last notification to away failed');
  await checkAppearance(page, 'receivers');
  await page.getByRole('link', { name: 'away' }).click();
  await checkAppearance(page, 'receiver');
  await page.getByRole('button', { name: 'Remove receiver' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Notifications go to demo-webhook');
});

test.describe('without a script, on a phone', () => {
  test.use({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });

  test('a test message is sent', async ({ page }) => {
    await page.goto(PATH);
    await fits(page);
    await page.getByRole('button', { name: 'Test: demo-webhook' }).click();
    await expect(page.getByRole('heading', { name: 'Test delivered to demo-webhook' })).toBeVisible();
    await fits(page);
  });
});
