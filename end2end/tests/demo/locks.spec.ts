// The list compared with the API: the same locks, by backend and by prefix.
import type { Page } from '@playwright/test';
import { BACKENDS, expect, type Locks, openLive, rows, test } from '../../demo';

/** Names on screen, from the links: text that users see may have hidden characters written out. */
async function listed(page: Page): Promise<string[]> {
  const hrefs = await rows(page).locator('.c-res a').evaluateAll((links) => links.map((it) => (it as HTMLAnchorElement).pathname));
  return hrefs.map((path) => decodeURIComponent(path.split('/').slice(3).join('/'))).toSorted();
}

for (const backend of BACKENDS) {
  test(`the list shows exactly the locks of ${backend} under churn`, async ({ page, api }) => {
    await page.setViewportSize({ width: 1440, height: 2600 });
    await openLive(page, `/locks?backend=${backend}`);
    await expect(async () => {
      const { locks } = await api<Locks>(`inventory?backend=${backend}&limit=200`);
      expect(locks.length).toBeGreaterThan(0);
      expect(await listed(page)).toEqual(locks.map((lock) => lock.resource).toSorted());
    }).toPass({ timeout: 30_000, intervals: [250] });
  });
}

test('the name tree filters the list to the locks it counts', async ({ page }) => {
  await openLive(page, '/locks?sort=resource');
  const tree = page.getByRole('navigation', { name: 'name segments' });
  for (const [segment, prefix] of [['/locks/', '/locks/'], ['deploy/', '/locks/deploy/']] as const) {
    await tree.getByRole('link', { name: segment }).first().click();
    await expect(page).toHaveURL(new RegExp(`prefix=${prefix}`));
    await expect(tree.locator('a[aria-current=true]')).toContainText(segment);
    await expect(async () => {
      const names = await listed(page);
      const counted = await tree.locator('a[aria-current=true] .tc').textContent({ timeout: 500 });
      expect(names.filter((name) => !name.startsWith(prefix))).toEqual([]);
      expect(names.length).toBe(Number(counted));
    }).toPass({ timeout: 20_000 });
  }
  await expect(rows(page).first()).toContainText('deploy/checkout');
});

test('a search finds an owner on any backend', async ({ page, api }) => {
  await openLive(page, '/locks');
  await page.locator('main [data-search]').fill('deployer-1');
  await page.keyboard.press('Enter');
  await expect(rows(page)).toHaveCount(1);
  await expect(rows(page).first().locator('.c-o')).toHaveText('deployer-1');
  const { locks } = await api<Locks>('inventory?owner=deployer-1');
  await expect(rows(page).first().locator('.c-res')).toHaveText(locks[0]?.resource ?? '');
});
