// One real lock: waiters in order, blocker tree, record, copy buttons.
import { type Detail, expect, type Locks, openLive, test } from '../../demo';

const MUTEX = '%2Flocks%2Ftenant_311:statement-run:2026-04';

test('an etcd mutex shows its waiters in queue order', async ({ page, api }) => {
  await openLive(page, `/locks/etcd-coord/${MUTEX}?source=mutex`);
  await expect(page.locator('h1')).toHaveText('/locks/tenant_311:statement-run:2026-04');
  await expect(async () => {
    const { waiters, ownerId } = await api<Detail>(`inventory/etcd-coord/${MUTEX}`);
    expect(waiters.length).toBeGreaterThanOrEqual(2);
    expect(waiters.map((it) => it.position)).toEqual(waiters.map((_, index) => index + 1));
    const shown = page.locator('table.wt tbody tr');
    expect(await shown.locator('td:first-child').allTextContents()).toEqual(waiters.map((it) => String(it.position)));
    expect(await shown.locator('.own').allTextContents()).toEqual(waiters.map((it) => it.ownerId));
    await expect(page.locator('main')).toContainText(`If it is released now, ${waiters[0]?.ownerId} gets it next.`, { timeout: 500 });
    await expect(page.locator('.lock')).toContainText(ownerId ?? 'no holder', { timeout: 500 });
  }).toPass({ timeout: 30_000 });
});

test('a new holder of the etcd mutex appears without a reload', async ({ page }) => {
  test.setTimeout(90_000);
  await openLive(page, `/locks/etcd-coord/${MUTEX}?source=mutex`);
  const first = page.locator('table.wt tbody tr').first().locator('.own');
  const next = await first.textContent();
  await expect(first).not.toHaveText(next ?? '', { timeout: 60_000 });
  await expect(page.locator('.lock')).toContainText(next ?? '');
});

test('sessions that block others in Postgres are shown as a tree', async ({ page, api }) => {
  let found: Detail | undefined;
  await expect.poll(async () => {
    const { locks } = await api<Locks>('inventory?backend=orders-db&limit=200');
    found = locks.find((it) => it.source === 'advisory' && (it.waiterCount ?? 0) > 0) as Detail | undefined;
    return found?.resource ?? '';
  }, { timeout: 60_000 }).not.toBe('');
  await openLive(page, `/locks/orders-db/${encodeURIComponent(found?.resource ?? '')}?source=advisory`);
  const tree = page.getByRole('region', { name: 'Blocker tree' });
  await expect(tree).toBeVisible();
  await expect(tree.locator('li li').first()).toBeVisible();
});

test('the record of a lock is read fresh and can be copied', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await openLive(page, '/locks/etcd-coord/%2Flocks%2Fdeploy%2Fcheckout?source=key');
  const record = page.getByRole('region', { name: 'Raw record' });
  await expect(record).toContainText('deployer-1');
  await record.getByRole('button', { name: 'copy' }).click();
  await expect(record.getByRole('button')).toContainText('copied');
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('deployer-1');
});
