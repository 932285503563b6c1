// What the console tells of its own eyes: address, version, answers, and what its accounts may and may not do.
import { type Backend, BACKENDS, expect, openLive, test } from '../../demo';

test('each backend shows what its account may do, as probed', async ({ page, api }) => {
  const watched = async () => (await api<Backend[]>('backends')).filter((it) => BACKENDS.includes(it.name));
  await expect.poll(async () => (await watched()).filter((it) => it.rights.length > 0).length, { timeout: 30_000 }).toBe(BACKENDS.length);
  const backends = await watched();
  await openLive(page, '/backends');
  for (const { name, rights, address } of backends) {
    const section = page.getByRole('region', { name, exact: true });
    await expect(section).toContainText(address);
    for (const { what, allowed, wanted } of rights) {
      const row = section.getByRole('row').filter({ has: page.getByRole('rowheader', { name: what }) }).first();
      const word = allowed === null ? 'unknown' : allowed ? (wanted ? 'may' : 'may, should not') : 'may not';
      await expect(row.getByRole('cell'), `${name}: ${what}`).toHaveText(word);
    }
  }
});

test('accounts of the demo may only look, and the one right too many is named with its mend', async ({ page }) => {
  await openLive(page, '/backends');
  const surplus = page.locator('td .st.warning', { hasText: 'may, should not' });
  await expect(surplus).toHaveCount(1);
  await expect(page.getByRole('region', { name: 'etcd-coord', exact: true }).locator('.mend').first()).toHaveText(/\w{4,}/);
});

test('a server that stops answering turns stale, and its locks are not shown as if seen', async ({ page, api }) => {
  test.setTimeout(120_000);
  const status = async () => (await api<Backend[]>('backends')).find((it) => it.name === 'cache-eu')?.status;
  await openLive(page, '/backends');
  await expect.poll(status, { timeout: 80_000, intervals: [250] }).toMatch(/stale|down/);
  const section = page.getByRole('region', { name: 'cache-eu', exact: true });
  await expect(section.locator('header')).toContainText(/stale|down/, { timeout: 3_000 });
  await expect(section.locator('.health')).toHaveClass(/is-stale/);
  await expect(section).toContainText('How to fix it');
});
