// Every page in both themes and widths: no console message, no axe violation, no overflow, a screenshot.
import { expect, fits, checkAppearance, open, test } from '../../gallery';

const PAGES: Record<string, string> = {
  overview: '/',
  locks: '/locks',
  'locks-filtered': '/locks?backend=etcd-coord&state=stale&sort=-waiters',
  'locks-no-match': '/locks?q=nothing-has-this-name',
  'lock-contended': '/locks/builtin/tenant_123:ledger-post?source=lease',
  'lock-session': '/locks/pg-orders/advisory:orders:72707369?source=advisory',
  'lock-stale': '/locks/etcd-coord/%2Fjobs%2Fbilling-close%2Ftenant_123?source=mutex',
  'lock-no-ttl': '/locks/redis-cache/lock:nightly-export?source=key',
  'lock-unknown': '/locks/redis-cache/lock:cart:9f31?source=key',
  'lock-released': '/locks/builtin/tenant_311:ledger-post?source=lease',
  'lock-unreadable': '/locks/builtin/tenant_204:import:0430?source=lease',
  'lock-which-one': '/locks/pg-orders/nightly:vacuum',
  backends: '/backends',
};

const SCENES = ['empty', 'down', 'starting', 'calm', 'unconfigured', 'many'];

for (const [name, path] of Object.entries(PAGES)) {
  test(`${name} is accessible, has no console message and fits in both themes and widths`, async ({ page, forgive }) => {
    // This page answers 409, which browsers log to the console.
    if (name === 'lock-which-one') forgive(/status of 409/);
    await open(page, path);
    await checkAppearance(page, name);
  });
}

for (const scene of SCENES) {
  test(`with the scene ${scene} overview, locks and backends are accessible and fit`, async ({ page, scene: set }) => {
    await set(scene);
    for (const [name, path] of [['overview', '/'], ['locks', '/locks'], ['backends', '/backends']] as const) {
      await open(page, path);
      await checkAppearance(page, `${scene}-${name}`, [{ theme: 'light', width: 1440 }, { theme: 'dark', width: 390 }]);
    }
  });
}

test('the notice of overdue alert rules shows first, and only when they are overdue', async ({ page, stream }) => {
  for (const path of ['/', '/locks', '/backends']) {
    await stream('on');
    await open(page, path);
    const notice = page.locator('.alerts-overdue');
    await expect(notice).toBeHidden();
    await stream('overdue');
    await expect(notice).toBeVisible();
    await expect(notice).toBeInViewport();
  }
});

test('a released lock has a page with its history and no unlock', async ({ page }) => {
  const answer = await page.goto('/locks/builtin/tenant_311:ledger-post?source=lease');
  expect(answer?.status()).toBe(200);
  await expect(page.locator('html[data-hydrated]')).toBeAttached();
  await expect(page.getByRole('status').filter({ hasText: 'Not held' })).toBeVisible();
  const facts = page.locator('dl.facts');
  await expect(facts).toContainText('held by');
  await expect(facts).toContainText('no holder');
  await expect(page.locator('#ownership')).toBeVisible();
  await expect(page.locator('#hold-time')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Recent events' })).toBeVisible();
  await expect(page.locator('[data-unlock]')).toHaveCount(0);
  await expect(page.getByText('Unlock…')).toHaveCount(0);
  await expect(page.getByRole('heading', { name: 'Time left' })).toHaveCount(0);
});

test('an unknown page and an unknown lock answer 404 with links', async ({ page, forgive }) => {
  forgive(/status of 404/);
  for (const [name, path, title] of [
    ['no-page', '/nowhere', 'There is no such page'],
    ['no-lock', '/locks/builtin/no:such:lock', 'No such lock'],
  ] as const) {
    const answer = await page.goto(path);
    expect(answer?.status()).toBe(404);
    await expect(page.locator('html[data-hydrated]')).toBeAttached();
    await expect(page.getByRole('heading', { name: title })).toBeVisible();
    await checkAppearance(page, name);
  }
});

test('the theme switch changes the theme, and the choice survives a reload', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'light' });
  await open(page, '/');
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await paper();
  await page.getByRole('button', { name: 'Switch between light and dark' }).click();
  await expect.poll(paper).not.toBe(light);
  const dark = await paper();
  await page.reload();
  expect(await paper()).toBe(dark);
});

test('names in the list have room at every width of a desktop', async ({ page }) => {
  for (const width of [1101, 1241, 1280, 1381, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await open(page, '/locks');
    const name = await page.locator('.locks tbody .c-res').first().evaluate((it) => it.getBoundingClientRect().width);
    expect(name, `${width} wide`).toBeGreaterThan(150);
  }
});

test('the labels of the tabs are level on a phone, with a count or without', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, '/');
  await expect(page.locator('.tabs > a span')).not.toHaveCount(0);
  const tops = await page.locator('.tabs > :is(a, button)').evaluateAll((tabs) => tabs.map((tab) => {
    const text = document.createRange();
    text.selectNode([...tab.childNodes].find((it) => it.nodeType === Node.TEXT_NODE) ?? tab);
    return Math.round(text.getBoundingClientRect().top);
  }));
  expect(new Set(tops).size).toBe(1);
});

test('on a phone no number is on another line than its unit', async ({ page, forgive }) => {
  forgive(/status of 409/);
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of Object.values(PAGES)) {
    await open(page, path);
    const broken = await page.locator('main').evaluate((main) => {
      const found: string[] = [];
      const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
      for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
        const content = text.textContent ?? '';
        for (const number of content.matchAll(/\d\s(ms|s|m|h|d|%|UTC)(?!\w)/g)) {
          const range = document.createRange();
          range.setStart(text, number.index);
          range.setEnd(text, number.index + number[0].length);
          if (new Set([...range.getClientRects()].map((it) => it.top)).size > 1) found.push(content);
        }
      }
      return found;
    });
    expect(broken, path).toEqual([]);
  }
});

test('a printed page is light, and no navigation covers its text', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 718, height: 1000 });
  await open(page, '/locks/builtin/tenant_123:ledger-post?source=lease');
  await expect(page.locator('.tabs')).toBeVisible();
  await page.getByRole('button', { name: 'Switch between light and dark' }).click();
  await page.getByRole('button', { name: 'Switch between light and dark' }).click();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  await expect(page.locator('.tabs')).toBeHidden();
  await expect(page.locator('html')).toHaveCSS('background-color', 'rgb(255, 255, 255)');
  await fits(page);
});
