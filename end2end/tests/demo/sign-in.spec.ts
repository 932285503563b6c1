// Sign-in: required on every page, one-time links, accessible pages without script.
import { expect, hydrated, liveBar, checkAppearance, openLive, test } from '../../demo';

test.describe('without a session', () => {
  test.use({ storageState: { cookies: [], origins: [] } });

  test('every page redirects to the sign-in, which returns to it', async ({ page, demo }) => {
    await page.goto('/locks?state=no_ttl');
    await expect(page).toHaveURL('/sign-in?next=%2Flocks%3Fstate%3Dno_ttl');
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
    await expect(page.locator('input[name=next]')).toHaveValue('/locks?state=no_ttl');
    const refused = await fetch(`${demo.url}/v1/inventory`);
    expect(refused.status).toBe(401);
    expect((await refused.json() as { code: string }).code).toBe('unauthenticated');
  });

  test('a one-time link works once', async ({ page, demo, forgive }) => {
    forgive(/status of 410/);
    await page.goto(demo.link ?? '');
    await expect(page.getByRole('heading', { name: 'Link no longer valid' })).toBeVisible();
    await expect(page.locator('pre')).toHaveText(/^\S+leasehold user link --name visitor --config \S+leasehold\.toml$/);
    await checkAppearance(page, 'sign-in-link-used');
    await page.getByRole('link', { name: 'Sign in with a password' }).click();
    await expect(page.getByLabel('Name')).toBeVisible();
  });

  test('a wrong password is reported at the form, by keyboard', async ({ page, forgive }) => {
    forgive(/status of 401/);
    await page.goto('/sign-in');
    await page.getByLabel('Name').focus();
    await page.keyboard.type('visitor');
    await page.keyboard.press('Tab');
    await page.keyboard.type('not the password');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('alert')).toHaveText('The name or the password is wrong.');
    await expect(page.getByLabel('Name')).toHaveValue('visitor');
    await expect(page.getByLabel('Password')).toHaveValue('');
    await checkAppearance(page, 'sign-in-refused');
  });

  test('the sign-in pages are accessible and fit', async ({ page, forgive }) => {
    forgive(/status of 410/);
    for (const [name, path] of [['sign-in', '/sign-in'], ['sign-in-link', '/sign-in?link=x'], ['setup-spent', '/setup?link=x']]) {
      await page.goto(path);
      await checkAppearance(page, name);
    }
  });
});

test('every page names the user and offers to sign out', async ({ page, browser, demo }) => {
  // A user of its own: the session of the other tests stays valid.
  const headers = { origin: demo.url };
  const added = await page.request.post('/v1/users', { headers, data: { name: 'leaver', grants: [{ role: 'operator' }] } });
  expect(added.status()).toBe(201);
  const { id } = await added.json() as { id: string };
  const made = await page.request.post(`/v1/users/${id}/link`, { headers });
  expect(made.status()).toBe(201);
  const { link } = await made.json() as { link: string };
  const context = await browser.newContext({ baseURL: demo.url, storageState: { cookies: [], origins: [] } });
  const theirs = await context.newPage();
  await theirs.goto(link);
  await theirs.getByRole('button', { name: 'Sign in' }).click();
  for (const path of ['/', '/locks', '/backends']) {
    await theirs.goto(path);
    await theirs.getByRole('button', { name: 'Your account' }).click();
    await expect(theirs.locator('#account')).toHaveText(/Signed in as leaver/);
  }
  await checkAppearance(theirs, 'account');
  const other = await context.newPage();
  await openLive(other, '/locks');
  const typing = await context.newPage();
  await openLive(typing, '/unlocks');
  await typing.getByLabel('Reason').fill('typed before the session ended');
  await theirs.locator('#account').getByRole('button', { name: 'Sign out' }).click();
  await expect(theirs).toHaveURL(/\/sign-in/);
  // A tab that stays open says why it is disconnected.
  await expect(liveBar(other)).toContainText('disconnected');
  await expect(other.getByRole('status').filter({ hasText: 'your session has ended' }).first()).toBeVisible();
  await expect(other.getByRole('link', { name: 'Sign in, in a new tab' }).first()).toBeVisible();
  // So does a tab with a typed reason, which it keeps.
  await expect(typing.getByRole('status').filter({ hasText: 'your session has ended' })).toBeVisible();
  await expect(typing.getByLabel('Reason')).toHaveValue('typed before the session ended');
  await theirs.goto('/locks');
  await expect(theirs).toHaveURL('/sign-in?next=%2Flocks');
  // After the same user has signed in again, the tabs keep their input. After another user, they show that user's pages.
  const signIn = async (id: string) => {
    const answer = await page.request.post(`/v1/users/${id}/link`, { headers });
    await context.clearCookies();
    await theirs.goto((await answer.json() as { link: string }).link);
    await theirs.getByRole('button', { name: 'Sign in' }).click();
    await hydrated(theirs);
  };
  await signIn(id);
  await expect(typing.getByLabel('Reason')).toHaveValue('typed before the session ended');
  const next = await page.request.post('/v1/users', { headers, data: { name: 'next-user', grants: [{ role: 'operator' }] } });
  await signIn((await next.json() as { id: string }).id);
  await expect(other.locator('#account')).toContainText('Signed in as next-user');
  await expect(typing.getByLabel('Reason')).toHaveValue('');
  await context.close();
});
