// The audit log: navigation, filters, single entries, export; without script,
// by keyboard, on a phone.
import { accessible, expect, fits, checkAppearance, open, test } from '../../demo';
import type { Page } from '@playwright/test';

interface Unlock { unlockId: string; state: string }
interface Row { id: string; phase: string; outcome: string; hash: string }

const lines = (page: Page) => page.locator('table.rec tbody tr');

/** Releases a lock of the lease service by force, with the requests of its page. Returns the unlock's id. */
async function unlock(url: string, cookie: string, api: <T>(path: string) => Promise<T>): Promise<string> {
  const post = async <T>(path: string, body: unknown): Promise<[number, T]> => {
    const answer = await fetch(`${url}/v1/${path}`, {
      method: 'POST', headers: { cookie, 'content-type': 'application/json' }, body: JSON.stringify(body),
    });
    return [answer.status, await answer.json() as T];
  };
  let id = '';
  // The holder releases and acquires it often: retried until the reviewed holding is still current at the confirmation.
  await expect(async () => {
    const { locks } = await api<{ locks: { resource: string; source: string; generation: string }[] }>('inventory?backend=builtin&limit=50');
    const lock = locks.find((it) => it.generation);
    const [begun, intent] = await post<Unlock>('unlocks', {
      backend: 'builtin', resource: lock?.resource, generation: lock?.generation, reason: 'stuck since 03:00, its owner agrees',
    });
    expect(begun).toBe(201);
    const [status, done] = await post<Unlock>(`unlocks/${intent.unlockId}/confirm`, { resource: lock?.resource });
    expect([status, done.state]).toEqual([200, 'released']);
    id = intent.unlockId;
  }).toPass({ timeout: 30_000 });
  return id;
}

test('the navigation leads to the audit log with its filter form', async ({ page }) => {
  await page.goto('/locks');
  await page.getByRole('navigation', { name: 'pages', exact: true }).getByRole('link', { name: 'Audit' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Audit log: ');
  await page.getByLabel('Actor, name or id').fill('visitor');
  await page.getByLabel('Action').selectOption('LOGIN');
  await page.getByRole('button', { name: 'Search' }).click();
  await expect(page).toHaveURL(/actor=visitor.*action=LOGIN/);
  await expect(lines(page).first()).toContainText('sign-in');
  await expect(page.getByLabel('Actor, name or id')).toHaveValue('visitor');
  await page.getByLabel('Resource begins with').fill('no such name');
  await page.getByRole('button', { name: 'Search' }).click();
  await expect(page.getByRole('heading', { name: 'No matching entries' })).toBeVisible();
  await checkAppearance(page, 'audit-nothing-fits');
  await page.getByRole('link', { name: 'All entries' }).click();
  await expect(page).toHaveURL('/audit');
});

test('newer entries leave the focus on its entry', async ({ page, demo }) => {
  const headers = { origin: demo.url };
  const silence = async () => {
    const data = { matchers: [{ label: 'prefix', value: 'nothing_here:' }], lasts: '1m', comment: 'a new entry' };
    expect((await page.request.post('/v1/silences', { headers, data })).status()).toBe(201);
  };
  await silence();
  await open(page, '/audit?action=SILENCE_CREATE');
  const first = lines(page).first().getByRole('link').first();
  const label = await first.getAttribute('aria-label') ?? '';
  await first.focus();
  await silence();
  await expect(first).not.toHaveAttribute('aria-label', label);
  await expect(page.getByRole('link', { name: label, exact: true })).toBeFocused();
  // Two new entries in one reading, for which the row is moved in the document.
  await page.keyboard.press('p');
  const newest = await first.getAttribute('aria-label') ?? '';
  await silence();
  await silence();
  await page.keyboard.press('p');
  await expect(first).not.toHaveAttribute('aria-label', newest);
  await expect(page.getByRole('link', { name: label, exact: true })).toBeFocused();
});

test('the steps of a forced unlock are grouped', async ({ page, demo, api }) => {
  const cookie = demo.session.cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  const id = await unlock(demo.url, cookie, api);
  await page.goto('/audit');
  await expect(page.locator('tr.joined.first').first()).toContainText('released');
  await checkAppearance(page, 'audit');
  await page.goto(`/audit?unlockId=${id}`);
  await expect(lines(page)).toHaveCount(3);
  const { entries: rows } = await api<{ entries: Row[] }>(`audit?unlockId=${id}`);
  expect(rows.map((row) => `${row.phase} ${row.outcome}`)).toEqual(['outcome released', 'act begun', 'intent pending']);
  await lines(page).first().getByRole('link').first().click();
  await expect(page).toHaveURL(`/audit/${rows[0]?.id}`);
  await expect(page.locator('main')).toContainText('stuck since 03:00, its owner agrees');
  await expect(page.locator('table.diff .differs').first()).toContainText('differs');
  await expect(page.locator('.hashes')).toContainText(rows[0]?.hash ?? 'no hash');
  await expect(page.getByText('Hash verified; the entry follows the previous one.')).toBeVisible();
  await checkAppearance(page, 'audit-row');
});

test('the listed entries can be exported', async ({ page, api }) => {
  await page.goto('/audit?action=LOGIN');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'CSV' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('leasehold-audit.csv');
  const { entries: rows } = await api<{ entries: { after: { format: string; filters: { action: string } } }[] }>('audit?action=AUDIT_EXPORT');
  expect(rows[0]?.after).toEqual({ format: 'csv', filters: { action: 'LOGIN' } });
});

test('an invalid filter is reported at its field, and a missing entry as missing', async ({ page, forgive }) => {
  forgive(/status of 40[04]/);
  await page.goto('/audit?from=soon&actor=ada');
  await expect(page.getByLabel('From, UTC')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByText('is not a time like')).toBeVisible();
  const red = await page.getByText('is not a time like').evaluate((it) => getComputedStyle(it).color);
  await expect(page.getByLabel('From, UTC')).toHaveCSS('border-top-color', red);
  await checkAppearance(page, 'audit-bad-question');
  await page.goto('/audit/999999999');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Not found');
  await accessible(page);
});

test.describe('without a script', () => {
  test.use({ javaScriptEnabled: false });

  test('the form filters, entries open and link their neighbours', async ({ page }) => {
    await page.goto('/audit?limit=2');
    await expect(lines(page)).toHaveCount(2);
    await page.getByRole('link', { name: 'Older entries' }).click();
    await expect(page.getByRole('link', { name: 'Newest entries' })).toBeVisible();
    const row = await lines(page).first().getByRole('link').first().textContent();
    await lines(page).first().getByRole('link').first().click();
    await expect(page).toHaveURL(`/audit/${row}`);
    await expect(page.getByRole('heading', { name: 'Hash chain' })).toBeVisible();
    await page.getByRole('link', { name: /^entry \d+$/ }).first().click();
    await expect(page).not.toHaveURL(`/audit/${row}`);
  });
});

test.describe('on a phone, by keyboard', () => {
  test.use({ viewport: { width: 390, height: 844 } });

  test('the audit log fits, and the first entry opens with Enter', async ({ page }) => {
    await page.goto('/audit');
    await fits(page);
    const below = page.getByRole('navigation', { name: 'pages, below' });
    await below.getByRole('button', { name: 'More' }).click();
    await expect(below.getByRole('link', { name: 'Audit' })).toHaveAttribute('aria-current', 'page');
    await fits(page);
    await page.keyboard.press('Escape');
    await expect(below.getByRole('link', { name: 'Audit' })).toBeHidden();
    await lines(page).first().getByRole('link').first().focus();
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(/\/audit\/\d+$/);
    await fits(page);
  });
});
