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

test('every page says who is signed in, and lets them out', async ({ page, browser, demo }) => {
  // Somebody of their own: the session of the other tests goes on.
  const headers = { origin: demo.url };
  const added = await page.request.post('/v1/people', { headers, data: { name: 'leaver', grants: [{ role: 'viewer' }] } });
  expect(added.status()).toBe(201);
  const { id } = await added.json() as { id: string };
  const made = await page.request.post(`/v1/people/${id}/link`, { headers });
  expect(made.status()).toBe(201);
  const { link } = await made.json() as { link: string };
  const context = await browser.newContext({ baseURL: demo.url, storageState: { cookies: [], origins: [] } });
  const theirs = await context.newPage();
  await theirs.goto(link);
  await theirs.getByRole('button', { name: 'Go on' }).click();
  for (const path of ['/', '/locks', '/backends']) {
    await theirs.goto(path);
    await theirs.getByRole('button', { name: 'Your account' }).click();
    await expect(theirs.locator('#account')).toHaveText(/Signed in as leaver/);
  }
  await accessible(theirs);
  await lookAt(theirs, 'account');
  await theirs.locator('#account').getByRole('button', { name: 'Sign out' }).click();
  await expect(theirs).toHaveURL(/\/sign-in/);
  await theirs.goto('/locks');
  await expect(theirs).toHaveURL('/sign-in?next=%2Flocks');
  await context.close();
});
