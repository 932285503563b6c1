// Charts: complete without script, equal to their hidden tables, in both themes, on a phone.
import type { Page } from '@playwright/test';
import { accessible, expect, checkAppearance, open, test } from '../../gallery';

const LOCK = '/locks/pg-orders/tenant_123:billing-close:2026-04';

const ownership = (page: Page) => page.locator('#ownership');

/** Text of the hidden table and of the marks' tooltips, read in one step: the page redraws in between. */
async function both(page: Page, chart: string, marks: string): Promise<{ rows: string[][]; titles: string[] }> {
  return page.locator(chart).evaluate((it, marks) => ({
    rows: [...it.querySelectorAll('.sr tbody tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? '')),
    titles: [...it.querySelectorAll(marks)].map((title) => title.textContent ?? ''),
  }), marks);
}

test('the timeline shows holders, evictions and late writes', async ({ page }) => {
  await open(page, LOCK);
  const chart = ownership(page);
  await expect(chart.getByRole('heading')).toContainText('an owner still wrote 2 m 50 s after it lost the lock');
  const lanes = chart.locator('.lane .ln b');
  await expect(lanes.first()).toHaveText('worker-7');
  await expect(chart).toContainText('force-released');
  await expect(chart.locator('.legend')).toContainText('zombie window');
  // Both charts show the same reading, and their times run: read in one step, because the page redraws between two steps.
  await expect(async () => {
    const [marked, drawn] = await page.evaluate(() => [
      document.querySelector('#hold-time .rule.now text')?.textContent ?? '',
      document.querySelector('#ownership .held.now title')?.textContent ?? '',
    ]);
    expect(marked).toMatch(/^this lock 4\d\sm \d\d\ss$/);
    expect(drawn).toContain(`: ${marked.replace('this lock', 'held')} under token `);
  }).toPass({ timeout: 30_000 });
});

test('each mark of a chart has an equal row in the hidden table', async ({ page }) => {
  await open(page, LOCK);
  for (const chart of ['#ownership', '#hold-time']) {
    const { rows, titles } = await both(page, chart, 'svg svg title, svg rect > title');
    expect(rows.length, chart).toBeGreaterThan(3);
    for (const row of rows) expect(titles.join('\n'), chart).toContain(row.at(-1) ?? '');
  }
  await open(page, '/');
  const { rows, titles } = await both(page, '#held', 'rect > title');
  for (const [from, until, held, waiting] of rows) {
    expect(titles).toContain(`${from} to ${until}: ${held}`);
    expect(titles).toContain(`${from} to ${until}: ${waiting}`);
  }
});

test('the time range is a link, stays in the URL and works without a reload', async ({ page }) => {
  await open(page, LOCK);
  await page.evaluate(() => { document.title = 'the same document'; });
  const ranges = ownership(page).getByRole('navigation', { name: 'time range' });
  await ranges.getByRole('link', { name: '24 h' }).click();
  await expect(page).toHaveURL(/range=24h/);
  await expect(ranges.locator('[aria-current]')).toHaveText('24 h');
  await page.goBack();
  await expect(ranges.locator('[aria-current]')).not.toHaveText('24 h');
});

test('pages with charts are accessible and fit', async ({ page }) => {
  await open(page, LOCK);
  await checkAppearance(page, 'charts-lock');
  await open(page, '/');
  await checkAppearance(page, 'charts-overview');
});

test('a lock with a hostile name has charts', async ({ page }) => {
  await open(page, '/locks/redis-cache/hostile:%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E');
  await expect(ownership(page)).toBeVisible();
  await expect(page.locator('main img')).toHaveCount(0);
  await accessible(page);
});

test.describe('values under the pointer', () => {
  /** Reads the chart at a share of its width. */
  const pointAt = async (page: Page, chart: string, share: number) => {
    const area = page.locator(`${chart} .crosshair`);
    await area.scrollIntoViewIfNeeded();
    const box = await area.boundingBox();
    if (box === null) throw new Error(`no ${chart}`);
    await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
  };

  test('the mouse shows the values at its place, equal to those of the table', async ({ page }) => {
    await open(page, '/');
    await pointAt(page, '#held', 0.4);
    const reading = page.locator('#held .reading');
    // The chart moves with time, also between the two reads.
    await expect(async () => {
      const read = (await reading.textContent()) ?? '';
      const { rows } = await both(page, '#held', 'rect > title');
      const row = rows.find(([from, until]) => read.includes(`${from} to ${until}`));
      expect(row, read).toBeDefined();
      expect(read).toContain(row?.[2] ?? 'no row');
    }).toPass();
    await page.mouse.move(0, 0);
    await expect(page.locator('#held .reading')).toHaveCount(0);
  });

  test('arrow keys show the values from place to place', async ({ page }) => {
    await open(page, '/');
    const slider = page.locator('#held').getByRole('slider', { name: 'held and waiting over time' });
    await slider.focus();
    await page.keyboard.press('Home');
    const first = await slider.getAttribute('aria-valuetext');
    await page.keyboard.press('ArrowRight');
    await expect(slider).not.toHaveAttribute('aria-valuetext', first ?? '');
    await expect(slider).toHaveAttribute('aria-valuenow', '1');
    await expect(page.locator('#held .reading')).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(page.locator('#held .reading')).toHaveCount(0);
    await accessible(page);
  });

  test('a dragged span becomes the range in the URL', async ({ page }) => {
    await open(page, '/');
    await pointAt(page, '#held', 0.3);
    await page.mouse.down();
    await pointAt(page, '#held', 0.6);
    await page.mouse.up();
    await expect(page).toHaveURL(/from=.*to=/);
    await expect(page.locator('#held .ranges [aria-current]')).toContainText(' to ');
    await page.locator('#held').getByRole('link', { name: 'Fit' }).click();
    await expect(page).not.toHaveURL(/from=/);
  });

  test('a span is extended and opened with the keyboard', async ({ page }) => {
    await open(page, '/');
    await page.locator('#held').getByRole('slider').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(/from=.*to=/);
  });

  test('a point leads to the prefixes behind it', async ({ page }) => {
    await open(page, '/');
    await expect(page.locator('#held .cp a').first()).toHaveAttribute('href', /^\/contention\?from=.*by=held$/);
  });

  test.describe('by touch', () => {
    test.use({ hasTouch: true, viewport: { width: 390, height: 844 } });
    test('a tap shows values, which stay', async ({ page }) => {
      await open(page, '/');
      // `tap` measures the position itself, because rows above may still move. The crosshair lets the pointer through to the
      // drawing, so `force` skips the check that it receives the tap.
      await page.locator('#held .crosshair').tap({ force: true });
      await expect(page.locator('#held .reading').getByRole('link', { name: 'Open' })).toBeVisible();
      await expect(page).toHaveURL(/\/$/);
    });
  });
});

test.describe('without a script', () => {
  test.use({ javaScriptEnabled: false });

  test('charts come with the first HTML and their ranges are links', async ({ page }) => {
    await page.goto(LOCK);
    await expect(ownership(page).locator('.tl .held.now')).toHaveCount(1);
    await ownership(page).getByRole('link', { name: '24 h' }).click();
    await expect(page).toHaveURL(/range=24h/);
    await expect(ownership(page).locator('.note')).toContainText('last 24 h');
    await page.goto('/');
    await expect(page.locator('#held .ser')).not.toHaveCount(0);
  });
});
