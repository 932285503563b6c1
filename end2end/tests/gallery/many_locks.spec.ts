// 50,000 locks: the list opens, scrolls and stays small. Times are measured and printed, not asserted: machines differ.
import { readFileSync } from 'node:fs';
import { expect, liveBar, openLive, rows, test } from '../../gallery';

const ROWS_DRAWN_MAX = 100;
const ROWS_WANTED = 5_000;

test('a list of 50,000 locks shows its first rows, draws few of 5,000 scrolled ones, and stays small', async ({ page, browser, scene }) => {
  test.setTimeout(120_000);
  await scene('many');
  const start = Date.now();
  await page.goto('/locks?sort=resource', { waitUntil: 'commit' });
  await expect(rows(page).first()).toBeVisible();
  const firstRowMs = Date.now() - start;
  await openLive(page, '/locks?sort=resource');
  await expect(page.locator('.foot')).toContainText('of 50,000');

  // Paused, so that the time is that of scrolling and not of the gallery generating 50,000 locks per event.
  await page.keyboard.press('p');
  await expect(liveBar(page)).toContainText('Paused');
  const scrolled = Date.now();
  let [drawnMax, seen] = [0, 0];
  while (seen < ROWS_WANTED) {
    await page.mouse.wheel(0, 4_000);
    const at = await page.evaluate(() => new Promise<number[]>((done) => requestAnimationFrame(() => {
      const drawn = [...document.querySelectorAll('table.locks tr[data-row]')];
      done([drawn.length, Number(drawn.at(-1)?.getAttribute('data-row') ?? 0)]);
    })));
    drawnMax = Math.max(drawnMax, at[0] ?? 0);
    seen = at[1] ?? 0;
  }
  const scrollMs = Date.now() - scrolled;
  expect(drawnMax, 'rows in the document').toBeLessThanOrEqual(ROWS_DRAWN_MAX);

  const inSight = await rows(page).evaluateAll((all) => all.filter((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > 0 && top < window.innerHeight;
  }).length);
  expect(inSight, 'rows in sight after scrolling').toBeGreaterThan(10);

  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const processes = await (await browser.newBrowserCDPSession()).send('SystemInfo.getProcessInfo');
  const renderers = processes.processInfo.filter((it) => it.type === 'renderer').map((it) => resident(it.id));
  console.log(`50,000 locks: first row after ${firstRowMs} ms; ${seen} rows scrolled in ${scrollMs} ms, at most ${drawnMax} drawn; `
    + `JS heap ${mb(usedSize)} MB; its renderer ${mb(Math.max(...renderers))} MB of its own`);
});

const mb = (bytes: number) => Math.round(bytes / 1e6);

/** Memory of a process that is its own: without the files that all of the browser's processes share. */
function resident(pid: number): number {
  const kb = /RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kb) * 1024;
}
