// The door: nobody comes in without signing in, a link works once, and its pages work without a script and look right.
import { accessible, expect, lookAt, test } from '../../demo';

test.describe('without a session', () => {
  test.use({ storageState: { cookies: [], origins: [] } });

  test('every page leads to signing in, which leads back', async ({ page, demo }) => {
    await page.goto('/locks?state=no_ttl');
    await expect(page).toHaveURL('/sign-in?next=%2Flocks%3Fstate%3Dno_ttl');
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
    await expect(page.locator('input[name=next]')).toHaveValue('/locks?state=no_ttl');
    const refused = await fetch(`${demo.url}/v1/inventory`);
    expect(refused.status).toBe(401);
    expect((await refused.json() as { code: string }).code).toBe('unauthenticated');
  });

  test('a link that was used does not work again', async ({ page, demo, forgive }) => {
    forgive(/status of 410/);
    await page.goto(demo.link ?? '');
    await page.getByRole('button', { name: 'Go on' }).click();
    await expect(page.getByRole('alert')).toContainText('This link was used, or is too old');
    await expect(page.getByLabel('Name')).toBeVisible();
    await accessible(page);
  });

  test('a wrong password is told at the form, by keyboard', async ({ page, forgive }) => {
    forgive(/status of 401/);
    await page.goto('/sign-in');
    await page.getByLabel('Name').focus();
    await page.keyboard.type('visitor');
    await page.keyboard.press('Tab');
    await page.keyboard.type('not the password');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('alert')).toHaveText('Name or password is not right.');
    await expect(page.getByLabel('Name')).toHaveValue('visitor');
    await expect(page.getByLabel('Password')).toHaveValue('');
    await lookAt(page, 'sign-in-refused');
  });

  test('the pages of the door look right', async ({ page, forgive }) => {
    forgive(/status of 410/);
    for (const [name, path] of [['sign-in', '/sign-in'], ['sign-in-link', '/sign-in?link=x'], ['setup-spent', '/setup?link=x']]) {
      await page.goto(path);
      await lookAt(page, name);
    }
  });
});
