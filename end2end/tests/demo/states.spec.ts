// Every state of the demo is diagnosed and shown with its label.
import { expect, type Locks, open, rows, test } from '../../demo';

const PLAYED: Record<string, string> = {
  healthy: 'healthy',
  expired: 'expired',
  no_ttl: 'no TTL',
  long_held: 'long-held',
  contended: 'contended',
  unknown: 'unknown',
  orphaned: 'orphaned',
  split: 'split',
  quorum_lost: 'quorum lost',
  not_renewing: 'not renewing',
  near_expiry: 'near expiry',
  stale: 'stale',
};

for (const [state, word] of Object.entries(PLAYED)) {
  test(`within 90 s a lock is ${word}, with its reason on the page`, async ({ page, api }) => {
    test.setTimeout(120_000);
    // A transient lock may be gone before the page has loaded: then the next one is tried.
    await expect(async () => {
      await expect.poll(async () => (await api<Locks>(`inventory?state=${state}`)).total, { timeout: 60_000, intervals: [250] })
        .toBeGreaterThan(0);
      await open(page, `/locks?state=${state}`);
      const row = rows(page).filter({ has: page.locator(`.c-st use[href="#s-${state}"]`) }).first();
      await expect(row.locator('.c-st')).toContainText(word, { timeout: 2_000 });
      const why = await row.locator('.c-st .st').getAttribute('title', { timeout: 500 });
      if (state !== 'healthy') expect(why).toMatch(/\w{3,}/);
    }).toPass({ timeout: 90_000 });
  });
}
