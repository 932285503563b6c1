// Who is told: the receiver that the demo brings, one that is added and refused, a test with its request and answer.
import { expect, fits, lookAt, test } from '../../demo';

const PATH = '/alerts/receivers';

test('the settings lead to the receivers, and the demo has one that hears', async ({ page }) => {
  await page.goto('/settings');
  await page.getByRole('navigation', { name: 'settings' }).getByRole('link', { name: 'Receivers' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('demo-webhook is told');
  await page.getByRole('button', { name: 'Test demo-webhook' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('demo-webhook took the test');
  await expect(page.getByLabel('request')).toContainText('x-signature: sha256=');
  await expect(page.getByLabel('answer')).toContainText('heard, and the signature is right');
  await lookAt(page, 'receivers-test');
});

test('an inner address is refused at its field, and one that does not answer shows why', async ({ page, forgive }) => {
  forgive(/status of 422/);
  await page.goto(PATH);
  const fill = async (url: string) => {
    await page.getByLabel('Name').fill('away');
    await page.getByLabel('Where to').fill(url);
    await page.getByLabel('Secret').fill('sixteen bytes at least');
    await page.getByRole('button', { name: 'Add it' }).click();
  };
  await fill('https://169.254.169.254/latest');
  await expect(page.getByLabel('Where to')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByText('a cloud\'s metadata service')).toBeVisible();
  await lookAt(page, 'receivers-refused');
  await fill('http://127.0.0.1:1/');
  await expect(page.getByRole('status')).toContainText('Added');
  await page.getByRole('button', { name: 'Test away' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('away did not take the test');
  await page.goto(PATH);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('away did not take its last message');
  await lookAt(page, 'receivers');
  await page.getByRole('link', { name: 'away' }).click();
  await lookAt(page, 'receiver');
  await page.getByRole('button', { name: 'Remove it' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('demo-webhook is told');
});

test.describe('without a script, on a phone', () => {
  test.use({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });

  test('a test is sent', async ({ page }) => {
    await page.goto(PATH);
    await fits(page);
    await page.getByRole('button', { name: 'Test demo-webhook' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toContainText('took the test');
    await fits(page);
  });
});
