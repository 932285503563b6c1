// The README's pictures, light and dark: the demo when several problems are visible, and the gallery without problems.
import { type Page } from '@playwright/test';
import { type Detail, expect, type Locks, openLive, test } from '../demo';
import { test as gallery } from '../gallery';

const IMAGES = '../docs/images';
const VISIBLE_STATES = ['expired', 'orphaned', 'not_renewing', 'no_ttl', 'contended'];
const MUTEX = '%2Flocks%2Ftenant_311:statement-run:2026-04';

async function picture(page: Page, name: string, height = 900): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(() => document.fonts.ready);
    await page.screenshot({ path: `${IMAGES}/${name}-${colorScheme}.png`, clip: { x: 0, y: 0, width: 1440, height } });
  }
}

test('overview, lock and alerts of the demo', async ({ page, api }) => {
  test.setTimeout(240_000);
  const states = async () => new Set((await api<Locks>('inventory?limit=500')).locks.map((lock) => lock.state));
  const waiters = async () => (await api<Detail>(`inventory/etcd-coord/${MUTEX}`)).waiters.length;
  const firing = async () => (await api<{ alerts: { state: string }[] }>('alerts')).alerts.filter((it) => it.state === 'firing').length;
  await expect.poll(async () => {
    const now = await states();
    return VISIBLE_STATES.filter((state) => !now.has(state));
  }, { timeout: 120_000 }).toEqual([]);
  await expect.poll(firing, { timeout: 120_000 }).toBeGreaterThanOrEqual(3);
  await expect.poll(waiters, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
  await openLive(page, '/');
  await page.getByRole('button', { name: 'Close the tour' }).click();
  await picture(page, 'overview');
  await openLive(page, `/locks/etcd-coord/${MUTEX}?source=mutex`);
  await picture(page, 'lock');
  await page.goto('/alerts');
  await picture(page, 'alerts');
});

gallery('overview of healthy backends', async ({ page, scene }) => {
  await scene('calm');
  await openLive(page, '/');
  // Without the charts below, whose generated history is of another scene.
  await picture(page, 'overview-healthy', 672);
});
