// Alerts on real incidents: acknowledged and silenced; a rule is created from a chart, previewed and saved; invalid input is
// reported at its field with the other input kept; by keyboard, without script, light and dark, on a phone.
import type { Page } from '@playwright/test';
import { accessible, expect, fits, lookAt, test } from '../../demo';

interface Alerts { alerts: { rule: string; state: string; labels: Record<string, string> }[] }
interface Rules { rules: { id: string; name: string; version: number; with: Record<string, string> }[] }

const REFUSED = 'tenant_408:ledger:2026-04';

/** The zombie's late write comes every minute and fires for five. */
async function refusedWriteFires(page: Page): Promise<void> {
  await expect(async () => {
    await page.goto('/alerts');
    await expect(line(page)).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 90_000 });
}

const line = (page: Page) => page.locator('.al', { hasText: 'Fencing rejections' }).filter({ hasText: 'firing' }).filter({ hasText: REFUSED }).first();

test('an alert is acknowledged and links its lock, rule and runbook', async ({ page }) => {
  test.setTimeout(150_000);
  await page.goto('/locks');
  await page.getByRole('navigation', { name: 'pages', exact: true }).getByRole('link', { name: 'Alerts' }).click();
  await expect(page).toHaveURL('/alerts');
  await refusedWriteFires(page);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('firing');
  await lookAt(page, 'alerts');
  await page.getByRole('button', { name: `Acknowledge Fencing rejections: ${REFUSED}` }).click();
  await expect(page.getByRole('status')).toHaveText('Acknowledged.');
  await expect(line(page)).toContainText('Acknowledged by visitor.');
  await line(page).getByRole('link', { name: 'Runbook: Fencing rejections' }).click();
  await expect(page).toHaveURL(/\/docs\/alerts#fencing_rejections$/);
  await accessible(page);
  await page.goBack();
  // Between two rounds of the zombie its lock is free: then the page shows its history.
  await line(page).locator('.al-of').click();
  await expect(page.locator('h1')).toHaveText(REFUSED);
  await expect(page.locator('#ownership')).toBeVisible();
});

test('a rule is created from a chart, rejected with its input kept, previewed, saved and changed', async ({ page, api, forgive }) => {
  test.setTimeout(150_000);
  forgive(/status of 422/);
  const lead = page.getByRole('link', { name: 'Add an alert rule' });
  await expect(async () => {
    await page.goto('/fencing');
    await expect(lead).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 90_000 });
  await lead.click();
  await expect(page).toHaveURL(/condition=fencing_rejections/);
  await expect(page.getByRole('heading', { name: 'Preview' })).toBeVisible();
  await page.getByLabel('Name').fill('Refused in the ledger');
  await page.getByLabel('at least').fill('0');
  await page.getByLabel('Prefix').fill('nothing_there:');
  await page.getByLabel('Message').fill('Look at {resource}');
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByRole('alert')).toContainText('A field below is invalid');
  await expect(page.getByLabel('at least')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('at least')).toHaveValue('0');
  await expect(page.getByLabel('Prefix', { exact: false }).first()).toHaveValue('nothing_there:');
  await expect(page.getByLabel('Message')).toHaveValue('Look at {resource}');
  await expect(page.getByText('covers no lock that is held or was seen')).toBeVisible();
  await lookAt(page, 'alert-rule-refused');
  await page.getByLabel('at least').fill('1');
  await page.getByLabel('Accept a prefix without locks').check();
  await page.getByRole('button', { name: 'Preview' }).click();
  await expect(page.locator('.pv-fig')).toContainText('0 times in 7 days');
  await page.getByLabel('Prefix').first().fill('tenant_408:');
  await expect(async () => {
    await page.getByRole('button', { name: 'Preview' }).click();
    await expect(page.locator('.pv-fig b')).not.toHaveText('0', { timeout: 1_000 });
  }).toPass({ timeout: 90_000 });
  await expect(page.locator('table.t tbody').first()).toContainText(REFUSED);
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByRole('status')).toContainText('Saved as version 1');
  await page.getByLabel('at least').fill('50');
  await page.getByRole('button', { name: 'Preview' }).click();
  await expect(page.getByText(/The saved rule: [1-9]/)).toBeVisible();
  await lookAt(page, 'alert-rule');
  await page.getByRole('button', { name: 'Save as version 2' }).click();
  await expect(page.getByRole('status')).toContainText('Saved as version 2');
  const made = (await api<Rules>('rules')).rules.find((it) => it.name === 'Refused in the ledger');
  expect(made?.with.count).toBe('50');
  const changes = page.getByRole('region', { name: 'Versions' });
  await expect(changes).toContainText('visitor');
  await expect(changes.getByRole('listitem').first()).toContainText(/at least.*1.*50/);
  await page.goto('/alerts');
  await page.locator('.al-r').getByRole('link', { name: 'Refused in the ledger' }).click();
  await page.getByRole('button', { name: 'Remove' }).click();
  await expect(page.getByRole('status')).toContainText('The rule is removed');
});

/** Height of the threshold line over the preview's chart, from its foot. */
async function share(page: Page): Promise<number> {
  return page.getByLabel(/^Threshold line/).evaluate((it: HTMLInputElement) => (Number(it.value) - Number(it.min)) / (Number(it.max) - Number(it.min)));
}

/** Takes the line with the mouse and lets it go at a share of the chart's height. */
async function dragTo(page: Page, to: number): Promise<void> {
  const plot = page.locator('.pv-plot');
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  if (box === null) throw new Error('no chart');
  const [x, y] = [box.x + box.width / 2, (part: number) => box.y + box.height * (1 - part)];
  await page.mouse.move(x, y(await share(page)));
  await page.mouse.down();
  await page.mouse.move(x, y(to), { steps: 5 });
  await page.mouse.up();
}

// Fails if the line cannot be dragged, takes precedence over a typed number, or is saved before its number was shown.
test('the threshold line is dragged by mouse and keyboard, previewed, overridden by a typed number, and saved', async ({ page }) => {
  test.setTimeout(150_000);
  await expect(async () => {
    await page.goto('/alerts/rules/new?condition=fencing_rejections&with.count=20');
    await expect(page.locator('.pv-drag')).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 90_000 });
  const number = page.getByLabel('at least', { exact: true });
  const line = page.getByLabel(/^Threshold line/);
  await expect(line).toHaveValue('20');
  await page.getByLabel('Name').fill('By the line');
  await dragTo(page, 0.5);
  const dragged = await line.inputValue();
  expect(Number(dragged)).toBeLessThan(20);
  expect(Math.abs(await share(page) - 0.5)).toBeLessThan(0.06);
  // The number follows the line before a request is sent.
  expect(await page.locator('.pv-now').evaluate((it) => getComputedStyle(it).getPropertyValue('--whole-int'))).toBe(dragged);
  await lookAt(page, 'alert-line-dragged');
  await page.getByRole('button', { name: 'Preview' }).click();
  await expect(number).toHaveValue(dragged);
  await expect(line).toHaveValue(dragged);
  await expect(page.getByLabel('Name')).toHaveValue('By the line');
  await expect(page.locator('.pv figcaption')).toContainText(`threshold ${dragged}`);

  // By keyboard to the bottom, where every rejected write fires; it stays within the threshold's bounds.
  await line.focus();
  await page.keyboard.press('ArrowDown');
  expect(Number(await line.inputValue())).toBeLessThan(Number(dragged));
  await page.keyboard.press('Home');
  await page.getByRole('button', { name: 'Preview' }).focus();
  await page.keyboard.press('Enter');
  await expect(number).toHaveValue('1');
  await expect(page.locator('.pv-fig b')).not.toHaveText('0');

  // Both changed: the typed number counts, with a remark.
  await number.fill('7');
  await line.focus();
  await page.keyboard.press('End');
  await page.getByRole('button', { name: 'Preview' }).click();
  await expect(page.getByRole('status')).toContainText('the field counts');
  await expect(number).toHaveValue('7');

  // Moved and saved at once: the new number is shown first.
  await line.focus();
  await page.keyboard.press('ArrowUp');
  const wanted = await line.inputValue();
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByRole('status')).toContainText('Not saved yet');
  await expect(number).toHaveValue(wanted);
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByRole('status')).toContainText('Saved as version 1');
  await expect(number).toHaveValue(wanted);
  await dragTo(page, 0.3);
  await page.getByRole('button', { name: 'Preview' }).click();
  await expect(page.locator('.pv figcaption')).toContainText(`saved ${wanted}, dashed`);
  await lookAt(page, 'alert-line');
  await page.getByRole('button', { name: 'Remove' }).click();
});

test('a silence requires an end, shows its matches, suppresses and is ended', async ({ page, api, forgive }) => {
  test.setTimeout(150_000);
  forgive(/status of 422/);
  await refusedWriteFires(page);
  await page.getByRole('link', { name: 'New silence' }).click();
  await page.getByLabel('Where').first().selectOption('rule');
  await page.getByLabel('Value, * as wildcard').first().fill('fencing_*');
  await page.getByLabel('Reason').fill('The ledger is being moved');
  // The browser accepts spaces, the server does not.
  await page.getByLabel('Duration').fill(' ');
  await page.getByRole('button', { name: 'Silence', exact: true }).click();
  await expect(page.getByLabel('Duration')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('Reason')).toHaveValue('The ledger is being moved');
  await expect(page.getByLabel('Value, * as wildcard').first()).toHaveValue('fencing_*');
  await lookAt(page, 'alert-silence-refused');
  await page.getByLabel('Duration').fill('2h');
  await page.getByRole('button', { name: 'Count matching alerts' }).click();
  await expect(page.getByRole('status')).toContainText(/Would silence [1-9]\d* alerts? firing now/);
  await page.getByRole('button', { name: 'Silence', exact: true }).click();
  await expect(page.getByRole('status')).toContainText('Silenced');
  await expect(line(page)).toContainText('Silenced.');
  const kept = page.locator('.al', { hasText: 'The ledger is being moved' });
  await expect(kept).toContainText('visitor');
  await expect(kept).toContainText(/ends in (1 h 59 m|2 h)/);
  expect((await api<Alerts>('alerts')).alerts.some((it) => it.rule === 'fencing_rejections' && it.state === 'firing')).toBe(true);
  await lookAt(page, 'alerts-silenced');
  await kept.getByRole('button', { name: /^End now: the silence on/ }).click();
  await expect(page.getByRole('status')).toContainText('The silence has ended');
});

test('a rule is found, filled, previewed and saved by keyboard', async ({ page }) => {
  await page.goto('/alerts/rules/new');
  await page.getByRole('link', { name: 'Contention' }).last().focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('form', { name: 'rule' })).toBeVisible();
  await page.getByLabel('Name').focus();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('By hand');
  await page.keyboard.press('Enter');
  // Enter previews and never saves.
  await expect(page.getByText('Preview the rule on past data')).toBeVisible();
  await expect(page.getByLabel('Name')).toHaveValue('By hand');
  const save = page.getByRole('button', { name: 'Save rule' });
  await page.getByLabel('Message').focus();
  for (let steps = 0; steps < 6 && !await save.evaluate((it) => it === document.activeElement); steps++) {
    await page.keyboard.press('Tab');
  }
  await expect(save).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('status')).toContainText('Saved as version 1');
  await page.getByRole('button', { name: 'Remove' }).click();
});

test.describe('without a script, on a phone', () => {
  test.use({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });

  test('alerts page, rule and silence fit and work', async ({ page }) => {
    await page.goto('/alerts');
    await fits(page);
    await page.getByRole('link', { name: 'Long-held', exact: true }).last().click();
    // Once its style sheet is loaded.
    await page.waitForURL(/\/alerts\/rules\//);
    await fits(page);
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.waitForLoadState('load');
    await expect(page.locator('.pv-fig')).toContainText('in 7 days');
    await fits(page);
    const line = page.getByLabel(/^Threshold line/);
    if (await line.isVisible()) {
      await line.focus();
      await page.keyboard.press('ArrowUp');
      const [at, unit] = [Number(await line.inputValue()), page.getByLabel('longer than its own p95 times')];
      await page.getByRole('button', { name: 'Preview' }).click();
      expect(Number(await unit.inputValue())).toBe(at);
    }
    await page.goto('/alerts/silences/new?backend=redis-cache');
    await fits(page);
  });
});

test('a GET on a form target redirects to its page', async ({ page }) => {
  await page.goto('/alerts/silences');
  await expect(page).toHaveURL(/\/alerts$/);
  await expect(page.getByRole('link', { name: 'New silence' })).toBeVisible();
});
