// Each state has its own shape and label besides its colour, in the list, its facets and on a lock's page.
import { expect, open, rows, test } from '../../gallery';

const WORDS: Record<string, string> = {
  dual_owner: 'two owners',
  split: 'split',
  quorum_lost: 'quorum lost',
  expired: 'expired',
  orphaned: 'orphaned',
  not_renewing: 'not renewing',
  near_expiry: 'near expiry',
  no_ttl: 'no TTL',
  long_held: 'long-held',
  contended: 'contended',
  stale: 'stale',
  unknown: 'unknown',
  healthy: 'healthy',
};

test('every state has its shape and its label in rows and facets', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 2200 });
  await open(page, '/locks?sort=-state');
  for (const [state, word] of Object.entries(WORDS)) {
    const row = rows(page).filter({ has: page.locator(`.c-st use[href="#s-${state}"]`) }).first();
    await expect(row.locator('.c-st')).toContainText(word);
    const facet = page.locator('.facets a', { has: page.locator(`use[href="#s-${state}"]`) });
    await expect(facet).toContainText(word);
    const shape = await row.locator('.c-st svg').boundingBox();
    expect(shape?.width, `${word} is drawn`).toBeGreaterThan(6);
  }
});

test('no two states share a shape', async ({ page }) => {
  await open(page, '/locks');
  const drawings = await page.evaluate(
    (states) => states.map((state) => document.getElementById(`s-${state}`)?.innerHTML ?? `no shape for ${state}`),
    Object.keys(WORDS),
  );
  expect(new Set(drawings).size).toBe(drawings.length);
  expect(drawings.filter((drawing) => !drawing.includes('<'))).toEqual([]);
});

test('in forced colours a state still shows its shape', async ({ page }) => {
  await page.emulateMedia({ forcedColors: 'active' });
  await open(page, '/locks?state=dual_owner');
  const shape = rows(page).first().locator('.c-st svg');
  await expect(shape).toBeVisible();
  expect(await shape.evaluate((it) => getComputedStyle(it).color)).not.toBe('rgba(0, 0, 0, 0)');
});

test('a lock that needs attention has its reason on its page and in the worklist', async ({ page }) => {
  await open(page, '/locks/pg-orders/tenant_408:payout-run:2026-04?source=table:public.distributed_locks');
  const reasons = page.getByRole('list', { name: 'states' });
  await expect(reasons).toContainText('not renewing');
  await expect(reasons).toContainText(/renewed every 10(\.0)?\ss, silent for/i);
  await open(page, '/');
  const worst = page.locator('table.worklist tbody').first();
  await expect(worst).toContainText('two owners');
  await expect(worst.locator('.c-why')).toContainText('with token 1840 at 02:58:41 UTC after worker-9 was granted 1841');
});

test('stale rows are hatched and unknown values have a reason', async ({ page }) => {
  await open(page, '/locks?state=stale');
  const row = rows(page).first();
  await expect(row).toHaveClass(/is-stale/);
  await expect(row.locator('.c-st')).toContainText(/stale, (\d+\sm\s)?\d+\ss/);
  const hatch = await row.evaluate((it) => [it, ...it.querySelectorAll('td')]
    .some((cell) => getComputedStyle(cell).backgroundImage.includes('gradient')));
  expect(hatch, 'a hatch behind the row').toBe(true);
  await open(page, '/locks?state=unknown');
  const owner = rows(page).first().locator('.c-o [title]').last();
  await expect(owner).toHaveText('unknown');
  await expect(owner).toHaveAttribute('title', /names no owner/);
});

test('the page of a split Redlock shows each node and the count against the quorum', async ({ page }) => {
  await open(page, '/locks/redis-cache/lock:checkout:settlement:batch-77?source=redlock');
  const nodes = page.getByRole('region', { name: 'Nodes' });
  await expect(nodes).toContainText('No owner is seen on 3 of the 5 nodes.');
  await expect(nodes.locator('.nc')).toHaveCount(5);
  await expect(nodes.locator('.vcell.a')).toHaveCount(2);
  await expect(nodes.locator('.vcell.b')).toHaveCount(2);
  await expect(nodes.locator('.nc').last()).toContainText('unreachable');
  await expect(nodes.locator('.rstrip title')).toContainText('redlock-e:6379 unreachable');
});
