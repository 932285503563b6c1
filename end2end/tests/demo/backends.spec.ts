// The Backends page: address, version, latency, account permissions.
import { type Backend, BACKENDS, expect, openLive, test } from '../../demo';

test('each backend shows the probed permissions of its account', async ({ page, api }) => {
  const watched = async () => (await api<Backend[]>('backends')).filter((it) => BACKENDS.includes(it.name));
  await expect.poll(async () => (await watched()).filter((it) => it.rights.length > 0).length, { timeout: 30_000 }).toBe(BACKENDS.length);
  const backends = await watched();
  await openLive(page, '/backends');
  // Permissions without a problem are folded; once unfolded they stay so over scans.
  for (const folded of await page.locator('.backend details > summary').all()) await folded.click();
  for (const { name, rights, address } of backends) {
    const section = page.getByRole('region', { name, exact: true });
    await expect(section).toContainText(address);
    for (const { what, allowed, wanted } of rights) {
      const row = section.getByRole('row').filter({ has: page.getByText(what, { exact: true }) }).first();
      const word = allowed === null ? 'unknown' : allowed ? (wanted ? 'granted' : 'granted, not needed') : 'denied';
      await expect(row.getByRole('cell'), `${name}: ${what}`).toHaveText(word);
    }
  }
});

test('accounts of the demo are read-only, and an excess permission has its remedy', async ({ page }) => {
  await openLive(page, '/backends');
  const surplus = page.locator('td .st.warning', { hasText: 'granted, not needed' });
  // Authentication is off in the demo's etcd, ZooKeeper and Consul.
  await expect(surplus).toHaveCount(3);
  await expect(page.getByRole('region', { name: 'etcd-coord', exact: true }).locator('.remedy').first()).toHaveText(/\w{4,}/);
});

test('an unreachable server becomes stale, and so do its locks', async ({ page, api }) => {
  test.setTimeout(120_000);
  const status = async () => (await api<Backend[]>('backends')).find((it) => it.name === 'cache-eu')?.status;
  await openLive(page, '/backends');
  await expect.poll(status, { timeout: 80_000, intervals: [250] }).toMatch(/stale|down/);
  const section = page.getByRole('region', { name: 'cache-eu', exact: true });
  await expect(section.locator('header')).toContainText(/stale|down/, { timeout: 3_000 });
  await expect(section.locator('.health')).toHaveClass(/is-stale/);
  await expect(section).toContainText('Remedy: ');
});
