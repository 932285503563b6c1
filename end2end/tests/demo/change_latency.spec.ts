// Time from a change on a backend to the screen. Measured and printed, not asserted: machines differ.
import { type Backend, expect, openLive, rows, test } from '../../demo';

const CHANGES = 8;
const KEY = '/locks/e2e:change';

const base64 = (text: string) => Buffer.from(text).toString('base64');

test('changes of a key in etcd reach the screen', async ({ page, api }) => {
  const { address } = (await api<Backend[]>('backends')).find((it) => it.kind === 'etcd') ?? {};
  const call = async (method: string, body: object): Promise<void> => {
    const answer = await fetch(`${address}/v3/kv/${method}`, { method: 'POST', body: JSON.stringify(body) });
    expect(answer.status, method).toBe(200);
  };
  const put = (owner: string) => call('put', { key: base64(KEY), value: base64(owner) });

  await put('owner-0');
  await openLive(page, '/locks?q=e2e:change');
  const owner = rows(page).first().locator('.c-o');
  await expect(owner).toHaveText('owner-0');
  await page.evaluate(() => {
    const seen: Record<string, number> = {};
    Object.assign(window, { seen });
    const look = () => {
      const text = document.querySelector('table.locks tr[data-row] .c-o')?.textContent ?? '';
      seen[text] ??= Date.now();
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  });

  const took: number[] = [];
  for (let change = 1; change <= CHANGES; change += 1) {
    // Spread over the stream's interval, to hit neither its best nor its worst moment each time.
    await page.waitForTimeout(500 + 37 * change % 500);
    const begun = Date.now();
    await put(`owner-${change}`);
    await expect(owner).toHaveText(`owner-${change}`);
    const at = await page.evaluate((name) => (window as unknown as { seen: Record<string, number> }).seen[name], `owner-${change}`);
    took.push((at ?? Number.NaN) - begun);
  }
  await call('deleterange', { key: base64(KEY) });
  await expect(rows(page)).toHaveCount(0);

  took.sort((a, b) => a - b);
  console.log(`etcd to screen, ${CHANGES} changes: p50 ${took[CHANGES / 2 - 1]} ms, p99 (the slowest) ${took.at(-1)} ms, quickest ${took[0]} ms`);
});
