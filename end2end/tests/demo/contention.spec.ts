// Where waiting happens: found by the navigation, complete without a script, its state in the address, the same numbers in
// the drawing and in the table behind it; light and dark, on a phone.
import { accessible, expect, fits, lookAt, test } from '../../demo';

test('the map fills within two minutes, and its cells say what its table says', async ({ page }) => {
  test.setTimeout(180_000);
  await page.goto('/locks');
  await page.getByRole('navigation', { name: 'pages', exact: true }).getByRole('link', { name: 'Contention' }).click();
  await expect(page).toHaveURL('/contention');
  await expect(async () => {
    await page.goto('/contention?range=1h');
    await expect(page.getByRole('heading', { level: 1 })).toContainText(/causes \d+ %|spread over|All waiting/);
  }).toPass({ timeout: 120_000 });
  const drawn = await page.locator('.hmap rect title').allTextContents();
  const table = page.locator('.made table');
  const words = await table.locator('tbody tr').evaluateAll((rows) =>
    rows.flatMap((row) => [...row.querySelectorAll('td')].slice(1, -1).map((cell) => cell.textContent)));
  expect(drawn.map((title) => title.slice(title.indexOf(': ') + 2))).toEqual(words);
  await accessible(page);
  await lookAt(page, 'contention');
});

test('a cell, the order and the range stand in the address', async ({ page }) => {
  test.setTimeout(180_000);
  await expect(async () => {
    await page.goto('/contention?range=1h');
    await expect(page.locator('.hmap svg a').first()).toBeAttached();
  }).toPass({ timeout: 120_000 });
  const href = await page.locator('.hmap svg a').first().getAttribute('href');
  await page.goto(href ?? '');
  await expect(page).toHaveURL(/range=1h.*prefix=.*at=/);
  await expect(page.locator('#cell')).toContainText('waited');
  await page.getByRole('link', { name: 'By refusals' }).click();
  await expect(page).toHaveURL(/by=refusals/);
  await expect(page.getByRole('heading', { name: 'Top prefixes by refusals' })).toBeVisible();
  await page.getByRole('navigation', { name: 'time range' }).getByRole('link', { name: '24 h' }).click();
  await expect(page).toHaveURL(/range=24h/);
  await accessible(page);
});

// Catches a map whose hundreds of cells each stop the tab key, and one that the keyboard cannot get into.
test('by keyboard the map is passed in a few stops, and walked from cell to cell', async ({ page }) => {
  test.setTimeout(180_000);
  const steps = page.getByRole('navigation', { name: 'cells beside it' });
  const inSteps = () => steps.evaluate((it) => it.contains(document.activeElement));
  // The newest cell is not known until its minute is added up, and then there is nowhere to go: again.
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
    // On from where the neighbours are: the link to its locks, then the ways on.
    for (let presses = 0; presses < 3 && !await inSteps(); presses++) await page.keyboard.press('Tab');
    expect(await inSteps()).toBe(true);
  }).toPass({ timeout: 150_000 });
  await accessible(page);
  await lookAt(page, 'contention-cell');
});

test('a question that does not fit is answered with its field', async ({ page, forgive }) => {
  forgive(/status of 400/);
  const answer = await page.goto('/contention?range=2h');
  expect(answer?.status()).toBe(400);
  await expect(page.getByRole('alert')).toContainText('range is none of 1h');
  await accessible(page);
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 390, height: 844 } });
  test('the map keeps the whole width and nothing overflows', async ({ page }) => {
    await page.goto('/contention?range=1h');
    await fits(page);
    await accessible(page);
    await lookAt(page, 'contention-phone');
  });
});
