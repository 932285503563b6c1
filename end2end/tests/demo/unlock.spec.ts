// Forced unlock of real locks of each backend: by mouse, by keyboard only, on a phone, and without JavaScript; and the errors
// after wrong input.
import type { Page } from '@playwright/test';
import { accessible, expect, fits, hydrated, type Lock, type Locks, checkAppearance, openLive, test } from '../../demo';

const REASON = 'stuck since 03:00, its owner agrees';

/** Locks of this kind with a lasting holder: sessions, or leases that were renewed; the longest held first. */
async function held(api: <T>(path: string) => Promise<T>, backend: string, source: string, count: number): Promise<Lock[]> {
  let found: Lock[] = [];
  await expect.poll(async () => {
    const { locks } = await api<Locks>(`inventory?backend=${backend}&state=healthy&sort=-held&limit=100`);
    const stays = (it: Lock & { renewal?: unknown }) => source === 'advisory' || Boolean(it.renewal);
    found = locks.filter((it) => it.source === source && stays(it)).slice(0, count);
    return found.length;
  }, { timeout: 60_000, message: `${count} ${source} on ${backend}` }).toBe(count);
  return found;
}

async function some(api: <T>(path: string) => Promise<T>, backend: string, source: string): Promise<Lock> {
  const [lock] = await held(api, backend, source, 1);
  return lock;
}

const address = (page: 'locks' | 'unlock', lock: Lock) =>
  `/${page}/${lock.backend}/${encodeURIComponent(lock.resource)}?source=${encodeURIComponent(lock.source)}`;

async function begin(page: Page): Promise<void> {
  await page.getByLabel('Reason').fill(REASON);
  await page.getByRole('button', { name: 'Continue to confirm' }).click();
  await page.waitForURL('**/unlocks/*');
}

async function confirm(page: Page, lock: Lock): Promise<void> {
  await page.getByLabel('Type the name of the resource').fill(lock.resource);
  await page.getByRole('button', { name: 'Release this lock' }).click();
  await expect(page.getByRole('heading', { name: 'Released', exact: true })).toBeVisible();
}

for (const [backend, source] of [
  ['orders-db', 'table:public.distributed_locks'], ['redis-cache', 'key'], ['etcd-coord', 'key'], ['builtin', 'lease'],
] as const) {
  test(`a lock of ${backend} is released from its own page`, async ({ page, api }) => {
    const lock = await some(api, backend, source);
    await openLive(page, address('locks', lock));
    if (backend === 'redis-cache') await checkAppearance(page, 'lock-with-unlock');
    await page.getByRole('link', { name: /^Unlock/ }).click();
    await expect(page.getByRole('heading', { name: 'Lock to release' })).toBeVisible();
    await expect(page.getByRole('cell', { name: lock.resource, exact: true })).toBeVisible();
    await begin(page);
    await confirm(page, lock);
    const outcome = page.getByRole('region', { name: 'Released' });
    await expect(outcome).toContainText('does not hold it any more');
    const here = page.url();
    await page.reload();
    await expect(page.getByRole('heading', { name: 'Released', exact: true })).toBeVisible();
    expect(page.url()).toBe(here);
  });
}

test('keyboard only, from the list to the outcome', async ({ page, api }) => {
  const lock = await some(api, 'redis-cache', 'key');
  await openLive(page, address('locks', lock));
  await page.keyboard.press('u');
  await page.waitForURL('**/unlock/**');
  await page.getByLabel('Reason').focus();
  await page.keyboard.type(REASON);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/unlocks/*');
  await expect(page.getByLabel('Type the name of the resource')).toBeFocused();
  await page.keyboard.type(lock.resource);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Released', exact: true })).toBeFocused();
});

test('the key u unlocks the row that has the focus', async ({ page }) => {
  await openLive(page, '/locks?backend=builtin&state=healthy');
  // Rows of a busy demo may be redrawn before the first key.
  await expect(async () => {
    await page.keyboard.press('j');
    await expect(page.locator('tbody tr:focus, tbody tr:focus-within')).toHaveCount(1, { timeout: 500 });
  }).toPass();
  await page.keyboard.press('u');
  await page.waitForURL('**/unlock/builtin/**');
});

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false });

  test('a lock is released on a phone', async ({ page, api }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    const lock = await some(api, 'etcd-coord', 'key');
    await page.goto(address('locks', lock));
    await page.getByRole('link', { name: /^Unlock/ }).click();
    await begin(page);
    await confirm(page, lock);
  });
});

test('wrong input is reported at its field, kept, and releases nothing', async ({ page, api, forgive }) => {
  forgive(/status of 422/);
  const lock = await some(api, 'builtin', 'lease');
  await page.goto(address('unlock', lock));
  await page.getByLabel('Reason').fill('..........');
  await page.getByRole('button', { name: 'Continue to confirm' }).click();
  await expect(page.getByLabel('Reason')).toHaveValue('..........');
  await expect(page.getByLabel('Reason')).toHaveAccessibleDescription(/made of words/);
  await checkAppearance(page, 'unlock-weak-reason');
  await begin(page);
  await checkAppearance(page, 'unlock-confirm');
  await page.getByLabel('Type the name of the resource').fill(`${lock.resource}\u200b`);
  await page.getByRole('button', { name: 'Release this lock' }).click();
  await expect(page.getByLabel('Type the name of the resource')).toHaveAccessibleDescription(/U\+200B follows/);
  await checkAppearance(page, 'unlock-wrong-name');
  await page.getByRole('button', { name: 'Cancel, release nothing' }).click();
  await expect(page.getByRole('heading', { name: 'Cancelled' })).toBeVisible();
  await checkAppearance(page, 'unlock-cancelled');
});

test('the first step and an outcome are accessible and fit', async ({ page, api }) => {
  const lock = await some(api, 'etcd-coord', 'mutex').catch(() => some(api, 'etcd-coord', 'key'));
  await page.goto(address('unlock', lock));
  await checkAppearance(page, 'unlock-look');
  const session = await some(api, 'orders-db', 'advisory').catch(() => lock);
  await page.goto(address('unlock', session));
  await checkAppearance(page, 'unlock-session');
  const other = await some(api, 'redis-cache', 'key');
  await page.goto(address('unlock', other));
  await begin(page);
  await confirm(page, other);
  await checkAppearance(page, 'unlock-released');
});

test('a protected name needs a second approver, and break-glass is flagged', async ({ page, api }) => {
  const lock = await some(api, 'builtin', 'lease');
  await page.goto('/settings/protected-prefixes');
  await page.getByRole('textbox', { name: 'Prefix' }).fill(lock.resource);
  await page.getByRole('button', { name: 'Set protection' }).click();
  await expect(page.getByRole('status').filter({ hasText: 'Protection saved' })).toBeVisible();
  await checkAppearance(page, 'settings-protected-prefixes');
  await page.goto(address('unlock', lock));
  await expect(page.getByText('This name is protected.')).toBeVisible();
  await begin(page);
  await expect(page.getByRole('button', { name: 'Release this lock' })).toBeDisabled();
  await expect(page.getByLabel('Give this link to the second approver')).toHaveValue(page.url());
  await checkAppearance(page, 'unlock-waiting');
  await page.getByRole('link', { name: /Break-glass/ }).click();
  await checkAppearance(page, 'unlock-alone');
  await page.getByLabel('Reason to act without a second approver').fill('no approver answers the pager at night');
  await page.getByLabel('Type the name of the resource').fill(lock.resource);
  await page.getByRole('button', { name: 'Release (break-glass)' }).click();
  await expect(page.getByRole('heading', { name: 'Released', exact: true })).toBeVisible();
  await expect(page.getByRole('status').filter({ hasText: 'not reviewed yet' })).toBeVisible();
  await checkAppearance(page, 'unlock-flagged');
  await page.goto('/settings/protected-prefixes');
  await page.getByRole('button', { name: /^Remove the protection/ }).click();
  await expect(page.getByText('no name is protected')).toBeVisible();
});

test('a page that waits for approval shows the outcome of another tab without a reload', async ({ page, api, context }) => {
  const lock = await some(api, 'builtin', 'lease');
  await page.goto('/settings/protected-prefixes');
  await page.getByRole('textbox', { name: 'Prefix' }).fill(lock.resource);
  await page.getByRole('button', { name: 'Set protection' }).click();
  await expect(page.getByRole('status').filter({ hasText: 'Protection saved' })).toBeVisible();
  await page.goto(address('unlock', lock));
  await begin(page);
  await hydrated(page);
  await page.evaluate(() => { document.body.dataset.same = ''; });
  await expect(page.getByRole('button', { name: 'Release this lock' })).toBeDisabled();
  const other = await context.newPage();
  await other.goto(page.url());
  await other.getByRole('link', { name: /Break-glass/ }).click();
  await other.getByLabel('Reason to act without a second approver').fill('no approver answers the pager at night');
  await other.getByLabel('Type the name of the resource').fill(lock.resource);
  await other.getByRole('button', { name: 'Release (break-glass)' }).click();
  await expect(other.getByRole('heading', { name: 'Released', exact: true })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Released', exact: true })).toBeVisible();
  await expect(page.locator('body[data-same]')).toHaveCount(1);
  await other.close();
  await page.goto('/settings/protected-prefixes');
  await page.getByRole('button', { name: /^Remove the protection/ }).click();
  await expect(page.getByText('no name is protected')).toBeVisible();
});

test('locks are selected one by one, and unconfirmed ones are not touched', async ({ page, api, forgive }) => {
  forgive(/status of 422/);
  const locks = await held(api, 'redis-cache', 'key', 2);
  await page.goto('/unlocks?backend=redis-cache');
  await checkAppearance(page, 'unlock-several-choose');
  for (const { resource } of locks) {
    await page.getByRole('checkbox', { name: `unlock ${resource} on redis-cache`, exact: true }).check();
  }
  await hydrated(page);
  const reading = page.waitForResponse(/\/api\/unlock-candidates/);
  await page.getByRole('link', { name: 'read again' }).click();
  await reading;
  await expect(page.getByRole('checkbox', { checked: true })).toHaveCount(2);
  await page.getByLabel('Reason').fill(REASON);
  await page.getByRole('button', { name: 'Continue to confirm' }).click();
  await expect(page.getByRole('heading', { name: 'Confirm 2 unlocks' })).toBeVisible();
  const fields = page.getByLabel('Type the name of the resource to release it');
  const [first] = await page.locator('.to-type').allTextContents();
  for (const at of [0, 1]) await fields.nth(at).fill(first);
  await page.getByRole('button', { name: 'Release the locks with a typed name' }).click();
  await expect(page.getByRole('heading', { name: 'Confirm 1 unlock' })).toBeVisible();
  await checkAppearance(page, 'unlock-several-half');
  const [last] = await page.locator('.to-type').allTextContents();
  await fields.fill(last);
  await fields.press('Enter');
  await expect(page.getByRole('heading', { name: /of 2 released/ })).toBeFocused();
});

test('a form sent without a session keeps its input and is resent', async ({ page, api, context, forgive }) => {
  forgive(/status of 401/);
  const lock = await some(api, 'builtin', 'lease');
  await openLive(page, address('unlock', lock));
  await page.getByLabel('Reason').fill(REASON);
  const session = await context.cookies();
  await context.clearCookies();
  await page.getByRole('button', { name: 'Continue to confirm' }).click();
  await expect(page.getByRole('alert').filter({ hasText: 'your session has ended' })).toBeVisible();
  await expect(page.getByLabel('Reason')).toHaveValue(REASON);
  await checkAppearance(page, 'signed-out');
  await context.addCookies(session);
  await page.getByRole('button', { name: 'Continue to confirm' }).click();
  await page.waitForURL('**/unlocks/*');
});

test('a release whose reply is lost is not called undone, and the notice goes with the result', async ({ page, api }) => {
  const lock = await some(api, 'redis-cache', 'key');
  await openLive(page, address('unlock', lock));
  await begin(page);
  await page.evaluate(() => {
    const { fetch } = window;
    window.fetch = async (...request) => {
      const answer = await fetch(...request);
      if (String(request[0]).endsWith('/confirm')) throw new TypeError('the reply is lost');
      return answer;
    };
  });
  // Paused, so that only the reply can show the result.
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByLabel('Type the name of the resource').fill(lock.resource);
  await page.getByRole('button', { name: 'Release this lock' }).click();
  const alert = page.getByRole('alert').filter({ hasText: 'Outcome unknown: the console did not answer' });
  await expect(alert).toBeVisible();
  await expect(alert.getByRole('link')).toHaveAttribute('href', '');
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByRole('heading', { name: 'Released', exact: true })).toBeVisible();
  await expect(alert).toHaveCount(0);
});

test('a free lock offers no unlock', async ({ page, forgive }) => {
  forgive(/status of 404/);
  await page.goto('/unlock/builtin/no-such-lock');
  await expect(page.getByRole('heading', { name: 'Nothing to unlock' })).toBeVisible();
  await accessible(page);
  await fits(page);
});
