// Waits page with the demo's own deadlock across two systems, and a second one: two etcd sessions, each of which holds one mutex
// and waits for the other's.
import { type Backend, expect, checkAppearance, openLive, test } from '../../demo';

const base64 = (text: string) => Buffer.from(text).toString('base64');

test('a deadlock appears without a reload, is drawn with its releases, and goes when it is broken', async ({ page, api }) => {
  const { address } = (await api<Backend[]>('backends')).find((it) => it.kind === 'etcd') ?? {};
  const call = async (path: string, body: object): Promise<Record<string, string>> => {
    const answer = await fetch(`${address}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) });
    expect(answer.status, path).toBe(200);
    return await answer.json() as Record<string, string>;
  };
  const session = async () => (await call('lease/grant', { TTL: 120 })).ID ?? '';
  // The recipe's key: the mutex, and the lease in hexadecimal.
  const enqueue = (mutex: string, lease: string, owner: string) => call('kv/put', {
    key: base64(`/locks/e2e:${mutex}/${BigInt(lease).toString(16)}`), value: base64(owner), lease,
  });

  await openLive(page, '/waits');
  const planted = 'One deadlock across 2 systems blocks 2 owners';
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(planted);
  const [left, right] = [await session(), await session()];
  await enqueue('left', left, 'exporter-1');
  await enqueue('right', right, 'importer-2');
  await enqueue('right', left, 'exporter-1');
  // The first wait is observed before the wait that closes the cycle.
  await expect(page.locator('table.ws')).toContainText('/locks/e2e:right');
  await enqueue('left', right, 'importer-2');

  await expect(page.getByRole('heading', { level: 1 })).toHaveText('2 deadlocks');
  const cycle = page.locator('section', { has: page.getByRole('heading', { name: 'One deadlock inside of etcd-coord blocks 2 owners' }) });
  const after = (heading: string) => cycle.locator(`xpath=following-sibling::section[.//h2="${heading}"][1]`);
  const drawn = cycle.locator('svg.wgw');
  for (const text of ['exporter-1', 'importer-2', '/locks/e2e:left', '/locks/e2e:right']) await expect(drawn).toContainText(text);
  // Each arrow carries the number of its release in the list.
  const numbers = await drawn.locator('text.n').allTextContents();
  expect(numbers.toSorted()).toEqual(await after('Suggested releases').locator('.no').allTextContents());
  expect(numbers).toHaveLength(2);
  const lanes = after('Cycle timeline').locator('.lane:not(.ax)');
  await expect(lanes).toHaveCount(2);
  // etcd does not report when a wait began, so the page does not say which wait closed the cycle.
  await expect(lanes.filter({ hasText: '≤' })).toHaveCount(2);
  await expect(lanes.filter({ hasText: 'closes the cycle' })).toHaveCount(0);
  await expect(page.locator('main')).toContainText('the red line marks when the last of these waits was seen');
  await expect(page.locator('main')).toContainText('Closed for at least');
  await checkAppearance(page, 'waits-deadlock');

  await openLive(page, '/');
  await expect(page.locator('.overview-deadlocks')).toContainText('etcd-coord');
  await openLive(page, '/waits');
  await call('lease/revoke', { ID: right });
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(planted);
  await call('lease/revoke', { ID: left });
});
