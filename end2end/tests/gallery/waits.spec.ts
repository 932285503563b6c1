// Waits page with a deadlock of three systems: its drawing, its ranked releases, its timeline, and what waits behind it.
import { expect, checkAppearance, open, test } from '../../gallery';

test('a deadlock of three systems is drawn with its releases and a timeline', async ({ page, scene }) => {
  await scene('deadlock');
  await open(page, '/waits');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('One deadlock across 3 systems blocks 7 owners');
  const drawn = page.locator('svg.wgw');
  for (const text of ['worker-7', 'worker-9', 'exporter-1']) await expect(drawn).toContainText(text);
  for (const backend of ['etcd-coord', 'pg-orders', 'builtin']) await expect(drawn).toContainText(`waits on ${backend}`);
  // Each arrow carries the number of its release in the list.
  const numbers = await drawn.locator('text.n').allTextContents();
  expect(numbers.toSorted()).toEqual(await page.locator('.rk .no').allTextContents());
  expect(numbers).toHaveLength(3);
  const lanes = page.locator('.wait-times .lane:not(.ax)');
  await expect(lanes).toHaveCount(3);
  // etcd reports only the latest possible start of a wait.
  await expect(lanes.filter({ hasText: '≤' })).toHaveCount(1);
  await expect(page.locator('main')).toContainText('migrate-1');
  await expect(page.locator('main')).not.toContainText('left out');
  await checkAppearance(page, 'waits-deadlock');
});

test('the overview leads to a deadlock of three systems', async ({ page, scene }) => {
  await scene('deadlock');
  await open(page, '/');
  const deadlocks = page.locator('.overview-deadlocks');
  for (const backend of ['etcd-coord', 'pg-orders', 'builtin']) await expect(deadlocks).toContainText(backend);
  await checkAppearance(page, 'overview-deadlock', [{ theme: 'light', width: 1440 }, { theme: 'dark', width: 390 }]);
});

test('the age of a reading runs without a new reading', async ({ page, scene }) => {
  await scene('deadlock');
  await page.route('**/api/**', () => new Promise(() => {}));
  await open(page, '/waits');
  const age = page.locator('main table small', { hasText: 'read ' }).first();
  await expect(age).not.toHaveText(await age.innerText());
});
