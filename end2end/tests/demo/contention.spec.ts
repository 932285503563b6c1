// Contention page: navigation, complete without script, state in the URL, the same numbers in
// the heatmap and in its table; light and dark, on a phone.
import { accessible, expect, fits, checkAppearance, test } from '../../demo';

test('the heatmap fills within two minutes, and its cells equal its table', async ({ page }) => {
  test.setTimeout(180_000);
  await page.goto('/locks');
  await page.getByRole('navigation', { name: 'pages', exact: true }).getByRole('link', { name: 'Contention' }).click();
  await expect(page).toHaveURL('/contention');
  await expect(async () => {
    await page.goto('/contention?range=1h');
    await expect(page.getByRole('heading', { level: 1 })).toContainText(/causes \d+\s%|spread over|All waiting/);
  }).toPass({ timeout: 120_000 });
  const drawn = await page.locator('.hmap rect title').allTextContents();
  const table = page.locator('#map .sr table');
  const words = await table.locator('tbody tr').evaluateAll((rows) =>
    rows.flatMap((row) => [...row.querySelectorAll('td')].slice(1, -1).map((cell) => cell.textContent)));
  expect(drawn.map((title) => title.slice(title.indexOf(': ') + 2))).toEqual(words);
  await checkAppearance(page, 'contention');
});

test('cell, order and range are in the URL', async ({ page }) => {
  test.setTimeout(180_000);
  // Not the first cells: they leave the range with the next minute.
  const cell = page.locator('.hmap svg a').nth(5);
  await expect(async () => {
    await page.goto('/contention?range=1h');
    await expect(cell).toBeAttached();
  }).toPass({ timeout: 120_000 });
  const href = await cell.getAttribute('href');
  await page.goto(href ?? '');
  await expect(page).toHaveURL(/range=1h.*prefix=.*at=/);
  await expect(page.locator('#cell')).toContainText('waited');
  // A cell outside of the range.
  await page.goto((href ?? '').replace(/at=\d{4}/, 'at=2020'));
  await expect(page.locator('#cell')).toContainText(/2020-.*\sUTC.*not in this range/);
  await page.locator('#cell').getByRole('link', { name: 'longest wait' }).click();
  await expect(page.locator('#cell')).toContainText('waited');
  await page.goto(href ?? '');
  await page.getByRole('link', { name: 'By refusals' }).click();
  await expect(page).toHaveURL(/by=refusals/);
  await expect(page.getByRole('heading', { name: 'Top prefixes by refusals' })).toBeVisible();
  await page.getByRole('navigation', { name: 'time range' }).getByRole('link', { name: '24 h' }).click();
  await expect(page).toHaveURL(/range=24h/);
  await accessible(page);
});

// Fails if each of the hundreds of cells is in the tab order, or if the keyboard cannot reach the cells.
test('the keyboard passes the heatmap in a few stops and walks from cell to cell', async ({ page }) => {
  test.setTimeout(180_000);
  const steps = page.getByRole('navigation', { name: 'neighbouring cells' });
  const inSteps = () => steps.evaluate((it) => it.contains(document.activeElement));
  // The newest cell is unknown until its minute is summed. Polled until the cell has neighbours.
  await expect(async () => {
    await page.goto('/contention?range=1h');
    await expect(steps.getByRole('link').first()).toBeVisible({ timeout: 1_000 });
    const names = await page.locator('.hmap .hn a').count();
    await page.getByRole('navigation', { name: 'time range' }).getByRole('link').last().focus();
    let stops = 0;
    while (stops <= names + 4 && !await inSteps()) {
      await page.keyboard.press('Tab');
      stops++;
    }
    expect(await inSteps(), `${stops} stops for ${names} rows`).toBe(true);
    const before = await page.locator('#cell p').textContent();
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(/prefix=.*at=.*#cell$/, { timeout: 5_000 });
    await expect(page.locator('#cell p')).not.toHaveText(before ?? '', { timeout: 1_000 });
    await expect(page.locator('#cell p')).toContainText('waited', { timeout: 1_000 });
    // Continues at the neighbours: the link to its locks, then the links to other cells.
    for (let presses = 0; presses < 3 && !await inSteps(); presses++) await page.keyboard.press('Tab');
    expect(await inSteps()).toBe(true);
  }).toPass({ timeout: 150_000 });
  await checkAppearance(page, 'contention-cell');
});

test('the page is live, and a prefix has its own hold and wait times', async ({ page }) => {
  test.setTimeout(180_000);
  await expect(async () => {
    await page.goto('/contention?range=1h&by=held');
    await expect(page.locator('.tp tbody tr').first()).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 120_000 });
  await expect(page.getByRole('group', { name: 'age of the data' })).toContainText('Live');
  await expect(page.locator('#hold-time .note')).toContainText('of all locks');
  await page.evaluate(() => { document.title = 'the same document'; });
  await page.locator('.tp tbody tr').first().getByRole('link').first().click();
  await expect(page).toHaveURL(/by=held.*backend=.*prefix=/);
  await expect(page.locator('#hold-time .note')).not.toContainText('of all locks');
  await accessible(page);
});

test('an invalid query names its field', async ({ page, forgive }) => {
  forgive(/status of 400/);
  const answer = await page.goto('/contention?range=2h');
  expect(answer?.status()).toBe(400);
  await expect(page.getByRole('alert')).toContainText('must be one of 1h');
  await accessible(page);
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 390, height: 844 } });
  test('the heatmap has the full width without overflow', async ({ page }) => {
    await page.goto('/contention?range=1h');
    await fits(page);
    await accessible(page);
  });
});
