// Every state that the demo plays is judged so by the console and stands on the page with its word.
import { expect, type Locks, open, rows, test } from '../../demo';

const PLAYED: Record<string, string> = {
  healthy: 'healthy',
  expired_present: 'expired but present',
  no_ttl: 'no TTL',
  long_held: 'long-held',
  contended: 'contended',
  unknown: 'unknown',
  holder_gone: 'holder gone',
  not_renewing: 'not renewing',
  near_expiry: 'near expiry',
  stale: 'stale',
};

for (const [state, word] of Object.entries(PLAYED)) {
  test(`within 90 s some lock is ${word}, and the page says so and why`, async ({ page, api }) => {
    test.setTimeout(120_000);
    // What comes and goes may be gone again before the page has loaded: then the next one counts.
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
