// Settings: a form that stays open shows what was saved.
import { accessible, expect, open, openLive, test } from '../../demo';

test('saved roles are the initial values of the next change', async ({ page, demo }) => {
  const headers = { origin: demo.url };
  const added = await page.request.post('/v1/users', { headers, data: { name: 'mover', grants: [{ role: 'admin' }] } });
  expect(added.status()).toBe(201);
  const { id } = await added.json() as { id: string };
  await open(page, `/settings/users/${id}`);
  const role = page.getByLabel('role 1', { exact: true });
  await expect(role).toHaveValue('admin');
  await role.selectOption('viewer');
  await page.getByRole('button', { name: 'Save roles' }).click();
  await expect(page.getByText('Saved. All servers apply it within a second.')).toBeVisible();
  await expect(role).toHaveValue('viewer');
  // By another admin, while the page is open.
  const grants = [{ role: 'viewer' }, { role: 'operator', backend: 'redis-cache' }];
  const changed = await page.request.put(`/v1/users/${id}/grants`, { headers, data: { grants } });
  expect(changed.status()).toBeLessThan(300);
  await expect(page.getByLabel('role 2', { exact: true })).toHaveValue('operator');
});

test('the focus stays in the place of a form that was replaced', async ({ page, demo }) => {
  const headers = { origin: demo.url };
  const added = await page.request.post('/v1/users', { headers, data: { name: 'disabled-user', grants: [{ role: 'viewer' }] } });
  expect(added.status()).toBe(201);
  const { id } = await added.json() as { id: string };
  await open(page, `/settings/users/${id}`);
  await page.getByRole('button', { name: 'Disable' }).press('Enter');
  await expect(page.getByRole('heading', { name: 'disabled-user is disabled' })).toBeVisible();
  await expect(page.locator('.acts')).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('button', { name: 'Enable' })).toBeFocused();
});

test('the focus stays in the list whose row was removed', async ({ page, demo }) => {
  const headers = { origin: demo.url };
  for (const prefix of ['focus-a:', 'focus-b:']) {
    const set = await page.request.put('/v1/protected-prefixes', { headers, data: { prefix, protection: 'protected' } });
    expect(set.status()).toBe(200);
  }
  await open(page, '/settings/protected-prefixes');
  const remove = (prefix: string) => page.getByRole('button', { name: `Remove the protection of ${prefix}` });
  await remove('focus-a:').press('Enter');
  await expect(remove('focus-a:')).toHaveCount(0);
  await expect(page.locator('.st-table tbody')).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(remove('focus-b:')).toBeFocused();
  // The list is removed with its last row.
  await page.keyboard.press('Enter');
  await expect(page.getByText('no name is protected')).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Protected prefixes', exact: true })).toBeFocused();
});

test('a second save is announced, and its message has its whole time', async ({ page }) => {
  await page.clock.install();
  await open(page, '/settings/protected-prefixes');
  const field = page.locator('input[name=prefix]');
  const save = async (prefix: string) => {
    await field.fill(prefix);
    await page.getByRole('button', { name: 'Set protection' }).click();
    await expect(field).toHaveValue('');
  };
  const message = page.locator('.toast .notice');
  await save('saved-a:');
  await expect(message).toHaveText('Protection saved. It is in effect.');
  await message.evaluate((it) => it.setAttribute('data-first', ''));
  await page.clock.fastForward(6_000);
  await save('saved-b:');
  // The second message is a new element, and the timer of the first does not remove it.
  await expect(page.locator('.toast .notice:not([data-first])')).toHaveText('Protection saved. It is in effect.');
  await expect(page.locator('[data-first]')).toHaveCount(0);
  await page.clock.fastForward(5_000);
  await expect(message).toBeVisible();
  await page.clock.fastForward(6_000);
  await expect(message).toHaveCount(0);
  for (const prefix of ['saved-a:', 'saved-b:']) {
    await page.getByRole('button', { name: `Remove the protection of ${prefix}` }).click();
    await expect(page.getByRole('button', { name: `Remove the protection of ${prefix}` })).toHaveCount(0);
  }
});

test('a row of the users that moves keeps the focus', async ({ page, demo }) => {
  const headers = { origin: demo.url };
  const ids: string[] = [];
  for (const name of ['a-moved', 'b-stays']) {
    const added = await page.request.post('/v1/users', { headers, data: { name, grants: [{ role: 'viewer' }] } });
    expect(added.status()).toBe(201);
    ids.push((await added.json() as { id: string }).id);
  }
  await open(page, '/settings/users');
  const names = () => page.locator('.st-table tbody th').allInnerTexts();
  const link = page.getByRole('link', { name: 'a-moved' });
  await link.focus();
  const at = (await names()).indexOf('a-moved');
  // Disabled users follow the others.
  const disabled = await page.request.post(`/v1/users/${ids[0]}/disable`, { headers });
  expect(disabled.status()).toBeLessThan(300);
  await expect.poll(async () => (await names()).indexOf('a-moved')).toBeGreaterThan(at);
  await expect(link).toBeFocused();
});

test('an admin turns read-only mode on and off, for every open page', async ({ page, context }) => {
  const other = await context.newPage();
  await openLive(other, '/locks');
  const notice = other.getByText('The console is read-only');
  await open(page, '/settings/protected-prefixes');
  const turn = (to: string) => page.getByRole('button', { name: `Turn read-only mode ${to}` });
  await turn('on').press('Enter');
  await expect(notice).toBeVisible();
  await expect(turn('off')).toBeFocused();
  await accessible(page);
  await turn('off').press('Enter');
  await expect(notice).toHaveCount(0);
  await expect(turn('on')).toBeFocused();
});
