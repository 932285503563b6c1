// The README's pictures, of the demo once several kinds of trouble are on screen at the same time.
import { type Detail, expect, type Locks, openLive, test } from '../demo';

const IMAGES = '../docs/images';
const WORTH_SEEING = ['expired_present', 'holder_gone', 'not_renewing', 'no_ttl', 'contended'];
const MUTEX = '%2Flocks%2Ftenant_311:statement-run:2026-04';

test('overview, locks and lock', async ({ page, api }) => {
  test.setTimeout(180_000);
  const states = async () => new Set((await api<Locks>('inventory?limit=500')).locks.map((lock) => lock.state));
  // Its lease is seen to be renewed, and somebody waits.
  const waiters = async () => (await api<Detail>(`inventory/etcd-coord/${MUTEX}`)).waiters.length;
  await expect.poll(async () => {
    const now = await states();
    return WORTH_SEEING.filter((state) => !now.has(state));
  }, { timeout: 120_000 }).toEqual([]);
  await expect.poll(waiters, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);

  for (const [name, path] of [
    ['overview', '/'],
    ['locks', '/locks'],
    ['lock', `/locks/etcd-coord/${MUTEX}?source=mutex`],
  ] as const) {
    await openLive(page, path);
    await page.evaluate(() => document.fonts.ready);
    await page.screenshot({ path: `${IMAGES}/${name}.png` });
  }
});
