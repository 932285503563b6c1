// The overview on real servers: worklist and backend health.
import { type Backend, BACKENDS, expect, type Locks, checkAppearance, openLive, test } from '../../demo';

test('the overview shows every backend with its real number of locks', async ({ page, api }) => {
  await expect.poll(async () => (await api<Backend[]>('backends')).filter((it) => it.locks > 0).map((it) => it.name), { timeout: 30_000 })
    .toEqual([...BACKENDS, 'builtin']);
  await openLive(page, '/');
  for (const name of [...BACKENDS, 'builtin']) {
    const strip = page.locator('ul.strip > li', { hasText: name });
    await expect(strip).toContainText(/locks\s*[1-9]/);
    await expect(strip).toContainText(/polled every/);
  }
});

test('the worklist names locks with their reason and a link', async ({ page }) => {
  await openLive(page, '/');
  const first = page.locator('table.worklist tbody').first();
  await expect(first.locator('.c-st')).toHaveText(/\w/, { timeout: 30_000 });
  await expect(first.locator('.c-why bdi')).toHaveText(/\w{2,}/);
  const name = await first.locator('.c-res').textContent();
  await first.getByRole('link').click();
  await expect(page.locator('h1')).toHaveText(name ?? '');
  await expect(page.getByRole('list', { name: 'states' })).toContainText('Reason: ');
});

test('the number of locks equals that of the API', async ({ page, api }) => {
  await openLive(page, '/');
  await expect(async () => {
    const { total } = await api<Locks>('inventory?limit=1');
    await expect(page.getByRole('link', { name: /^All \d+\slocks$/ })).toHaveText(`All ${total} locks`, { timeout: 500 });
  }).toPass({ timeout: 30_000 });
});

test('pages of real locks are accessible and fit', async ({ page }) => {
  for (const [name, path] of [['overview', '/'], ['locks', '/locks'], ['backends', '/backends']] as const) {
    await openLive(page, path);
    await checkAppearance(page, `demo-${name}`, [{ theme: 'dark', width: 1440 }, { theme: 'light', width: 390 }]);
  }
});

test('the tour leads to real locks and closes by keyboard, for good', async ({ page, browser, demo }) => {
  // A user of its own, so that the tour of the other tests stays.
  const headers = { origin: demo.url };
  const added = await page.request.post('/v1/users', { headers, data: { name: 'tourist', grants: [{ role: 'admin' }] } });
  const { id } = await added.json() as { id: string };
  const made = await page.request.post(`/v1/users/${id}/link`, { headers });
  const { link } = await made.json() as { link: string };
  const context = await browser.newContext({ baseURL: demo.url, storageState: { cookies: [], origins: [] } });
  const theirs = await context.newPage();
  await theirs.goto(link);
  await theirs.getByRole('button', { name: 'Sign in' }).click();
  await expect(theirs).toHaveURL(`${demo.url}/`);
  await openLive(theirs, '/');
  await checkAppearance(theirs, 'demo-tour', [{ theme: 'light', width: 1440 }, { theme: 'dark', width: 390 }]);
  const tour = theirs.getByRole('region', { name: 'Tour' });
  const hrefs = await tour.getByRole('link').evaluateAll((links) => links.map((it) => it.getAttribute('href') ?? ''));
  expect(hrefs).toHaveLength(4);
  for (const href of hrefs) expect((await theirs.request.get(href)).status(), href).toBe(200);
  const close = tour.getByRole('button', { name: 'Close the tour' });
  await close.focus();
  await theirs.keyboard.press('Enter');
  await expect(tour).toBeHidden();
  await expect(theirs.locator('#main')).toBeFocused();
  await theirs.reload();
  await expect(theirs.getByRole('heading', { name: 'Needs attention' })).toBeVisible();
  await expect(tour).toBeHidden();
  await context.close();
});
