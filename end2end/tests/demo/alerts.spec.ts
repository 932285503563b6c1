// Alerts on real incidents: acknowledged and silenced; a rule is created from a chart, previewed and saved; invalid input is
// reported at its field with the other input kept; by keyboard, without script, light and dark, on a phone.
import type { Page } from '@playwright/test';
import { accessible, expect, fits, hydrated, checkAppearance, test } from '../../demo';

interface Alerts { alerts: { rule: string; state: string; labels: Record<string, string> }[] }
interface Rules { rules: { id: string; name: string; version: number; with: Record<string, string> }[] }

const REFUSED = 'tenant_408:ledger:2026-04';

/** The zombie writes late every minute, and the alert fires for five minutes. */
async function refusedWriteFires(page: Page): Promise<void> {
  await expect(async () => {
    await page.goto('/alerts');
    await expect(line(page)).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 90_000 });
}

const line = (page: Page) => page.locator('.ag-g', { hasText: 'Fencing rejections' }).filter({ hasText: REFUSED }).first();

test('a group is acknowledged and undone in place, expands, and links its lock, rule and runbook', async ({ page }) => {
  test.setTimeout(150_000);
  await page.goto('/locks');
  await page.getByRole('navigation', { name: 'pages', exact: true }).getByRole('link', { name: 'Alerts' }).click();
  await expect(page).toHaveURL('/alerts');
  await refusedWriteFires(page);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('firing');
  await expect(page).toHaveTitle(/^\(\d+\) Alerts/);
  // The numbers of every row end below their heading.
  const ends = await page.locator('.ag-head > :nth-child(4), .ag-n').evaluateAll((all) => all.map((it) => Math.round(it.getBoundingClientRect().right)));
  expect(new Set(ends).size).toBe(1);
  await checkAppearance(page, 'alerts');
  await line(page).getByRole('button', { name: /^Acknowledge Fencing rejections/ }).click();
  await expect(page.getByRole('status').filter({ hasText: 'Acknowledged.' })).toBeVisible();
  await expect(line(page)).toContainText('by visitor');
  // The key acknowledges, and never withdraws an acknowledgement.
  const posts: string[] = [];
  page.on('request', (request) => { if (request.method() === 'POST') posts.push(new URL(request.url()).pathname); });
  await line(page).getByRole('link', { name: /^Expand Fencing rejections/ }).focus();
  await page.keyboard.press('a');
  await line(page).getByRole('button', { name: /^Undo the acknowledgement/ }).click();
  await expect(line(page).getByRole('button', { name: /^Acknowledge Fencing rejections/ })).toBeVisible();
  expect(posts).toEqual(['/alerts/unack']);
  // Expanded in place, and by its URL.
  await line(page).getByRole('link', { name: /^Expand Fencing rejections/ }).click();
  await expect(page).toHaveURL(/open=/);
  await expect(line(page).getByRole('table')).toContainText(REFUSED);
  await checkAppearance(page, 'alerts-expanded');
  // The firing time counts up without a reading: no event arrives while there is no change.
  await page.route('**/api/**', () => new Promise(() => {}));
  const past = line(page).getByRole('table').locator('tbody td.num').first();
  await expect(past).not.toHaveText(await past.innerText());
  await page.unroute('**/api/**');
  await page.reload();
  await line(page).getByRole('link', { name: 'Runbook' }).click();
  await expect(page).toHaveURL(/\/docs\/alerts#fencing_rejections$/);
  await accessible(page);
  await page.goBack();
  // Between two rounds of the zombie its lock is free: the page then shows its history.
  await line(page).locator('.ag-w .al-of').click();
  await expect(page.locator('h1')).toHaveText(REFUSED);
  await expect(page.locator('#ownership')).toBeVisible();
});

test('filters are in the URL, and the keyboard moves, expands and silences', async ({ page, forgive }) => {
  test.setTimeout(150_000);
  forgive(/status of 400/);
  await refusedWriteFires(page);
  await hydrated(page);
  await page.locator('select[name=rule]').selectOption('fencing_rejections');
  await expect(page).toHaveURL(/rule=fencing_rejections/);
  await expect(page.locator('.ag-g').first()).toContainText('Fencing rejections');
  await page.getByRole('link', { name: /^resolved/ }).click();
  await expect(page.getByRole('heading', { name: 'Resolved' })).toBeVisible();
  await page.keyboard.press('j');
  await expect(page.locator('.ag-g:focus-within')).toHaveCount(1);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/open=/);
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await page.keyboard.press('s');
  await expect(page.getByRole('heading', { name: 'New silence' })).toBeVisible();
  await page.goto('/alerts?state=loud');
  await expect(page.getByText('must be one of')).toBeVisible();
});

test('a page is opened from a focused group, whose own keys are other ones', async ({ page }) => {
  test.setTimeout(150_000);
  await refusedWriteFires(page);
  await hydrated(page);
  await page.keyboard.press('j');
  await expect(page.locator('.ag-g:focus-within')).toHaveCount(1);
  // Alone, s silences the group.
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await expect(page.getByRole('heading', { name: 'You are visitor' })).toBeVisible();
  await expect(page).toHaveURL(/\/settings$/);
});

test('the fields of one row of a rule are aligned', async ({ page }) => {
  // Two of these labels have two lines.
  await page.goto('/alerts/rules/new?condition=long_held');
  for (const [left, right] of [['severity', 'receivers'], ['group_by', 'runbook']]) {
    const feet = await page.locator(`#${left}, #${right}`).evaluateAll((fields) => fields.map((it) => it.getBoundingClientRect().bottom));
    expect(Math.abs((feet[0] ?? 0) - (feet[1] ?? 0)), `${left}, ${right}`).toBeLessThan(1);
  }
});

test('a new version of the console does not reload a half-typed rule', async ({ page }) => {
  await page.goto('/alerts/rules/new?condition=long_held');
  await hydrated(page);
  await expect(page.getByRole('heading', { name: 'Preview' })).toBeVisible();
  // Payloads of a server with other types.
  await page.route('**/api/**', (route) => route.fulfill({ contentType: 'application/octet-stream', body: 'other' }));
  await page.getByLabel('Name').fill('Half-typed');
  const notice = page.getByRole('status').filter({ hasText: 'another version' }).first();
  await expect(notice.getByRole('link', { name: 'Reload' })).toBeVisible();
  await expect(page.getByLabel('Name')).toHaveValue('Half-typed');
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
  await page.getByLabel('At least … rejected writes', { exact: true }).fill('0');
  await page.getByLabel('Prefix').fill('nothing_there:');
  await page.getByLabel('Message').fill('Look at {resource}');
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByRole('alert')).toContainText('A field below is invalid');
  await expect(page.getByLabel('At least … rejected writes', { exact: true })).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('At least … rejected writes', { exact: true })).toHaveValue('0');
  await expect(page.getByLabel('Prefix', { exact: false }).first()).toHaveValue('nothing_there:');
  await expect(page.getByLabel('Message')).toHaveValue('Look at {resource}');
  await expect(page.getByText('covers no lock that is held or was seen')).toBeVisible();
  await checkAppearance(page, 'alert-rule-refused');
  await page.getByLabel('At least … rejected writes', { exact: true }).fill('1');
  await page.getByLabel('Accept a prefix without locks').check();
  // The preview follows the form.
  await expect(page.locator('.fig b').last()).toHaveText('0');
  await page.getByLabel('Prefix').first().fill('tenant_408:');
  await expect(page.locator('.fig b').last()).not.toHaveText('0', { timeout: 90_000 });
  await expect(page.locator('.re-preview table.t tbody').first()).toContainText(REFUSED);
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByText('Rule, version 1').first()).toBeVisible();
  await page.getByLabel('At least … rejected writes', { exact: true }).fill('50');
  await expect(page.locator('.fig', { hasText: 'firings now' }).locator('b')).toHaveText(/[1-9]/);
  await expect(page.locator('.entry.is-changed')).toContainText('saved: 1');
  await checkAppearance(page, 'alert-rule');
  await page.getByRole('button', { name: 'Save as version 2' }).click();
  await expect(page.getByText('Rule, version 2').first()).toBeVisible();
  // The same URL as after the first save: the preview is no longer compared with the version before.
  await expect(page.getByRole('status').filter({ hasText: 'Saved as a new version' })).toBeVisible();
  await expect(page.locator('.fig', { hasText: 'firings now' })).toHaveCount(0);
  const made = (await api<Rules>('rules')).rules.find((it) => it.name === 'Refused in the ledger');
  expect(made?.with.count).toBe('50');
  const changes = page.getByRole('region', { name: 'Versions' });
  await expect(changes).toContainText('visitor');
  await expect(changes.getByRole('listitem').first()).toContainText(/At least … rejected writes.*1.*50/);
  await page.goto('/alerts');
  await page.locator('.al-r').getByRole('link', { name: 'Refused in the ledger', exact: true }).click();
  await page.getByRole('button', { name: /^Remove the rule/ }).click();
  await expect(page.getByText('The rule is removed')).toBeVisible();
});

/** Height of the threshold line above the bottom of the preview's chart. */
async function share(page: Page): Promise<number> {
  return page.getByLabel(/^Threshold line/).evaluate((it: HTMLInputElement) => (Number(it.value) - Number(it.min)) / (Number(it.max) - Number(it.min)));
}

/** Drags the line with the mouse and releases it at a share of the chart's height. `held` runs before the release. */
async function dragTo(page: Page, to: number, held: () => Promise<void> = async () => {}): Promise<void> {
  const plot = page.locator('.pv-plot');
  // A preview that arrives at the moment of the press draws another line.
  await expect(async () => {
    await plot.scrollIntoViewIfNeeded();
    const box = await plot.boundingBox();
    if (box === null) throw new Error('no chart');
    const [x, y] = [box.x + box.width / 2, (part: number) => box.y + box.height * (1 - part)];
    const before = await share(page);
    await page.mouse.move(x, y(before));
    await page.mouse.down();
    await page.mouse.move(x, y(to), { steps: 5 });
    if (await share(page) === before) {
      await page.mouse.up();
      throw new Error('the line does not follow the mouse');
    }
  }).toPass({ timeout: 30_000 });
  await held();
  await page.mouse.up();
}

// Fails if the line cannot be dragged, takes precedence over a typed number, or is saved before its number was shown.
test('the threshold line is dragged by mouse and keyboard, previewed, overridden by a typed number, and saved', async ({ page }) => {
  test.setTimeout(150_000);
  await expect(async () => {
    await page.goto('/alerts/rules/new?condition=fencing_rejections&with.count=20');
    await expect(page.locator('.pv-drag')).toBeVisible({ timeout: 1_000 });
  }).toPass({ timeout: 90_000 });
  // The line follows the pointer only in a hydrated form, and after the first preview has set its scale.
  await hydrated(page);
  await expect(page.locator('.pv figcaption')).toContainText('20');
  const number = page.getByLabel('At least … rejected writes', { exact: true });
  const line = page.getByLabel(/^Threshold line/);
  await expect(line).toHaveValue('20');
  // The preview of the typed name arrives while the line is being dragged, and does not replace the line.
  const previewed = page.waitForResponse((it) => it.url().includes('/api/rule-preview') && it.url().includes('By'));
  await page.getByLabel('Name').fill('By the line');
  await dragTo(page, 0.6, async () => {
    await (await previewed).finished();
    // Waits until pending changes are drawn.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const { x, width, y, height } = (await page.locator('.pv-plot').boundingBox()) ?? { x: 0, width: 0, y: 0, height: 0 };
    await page.mouse.move(x + width / 2, y + height / 2, { steps: 5 });
  });
  const dragged = await line.inputValue();
  expect(Number(dragged)).toBeLessThan(20);
  // Whole numbers: the line rests on the nearest one.
  const step = await line.evaluate((it: HTMLInputElement) => Number(it.step) / (Number(it.max) - Number(it.min)));
  expect(Math.abs(await share(page) - 0.5)).toBeLessThan(0.02 + step);
  // The number follows the line before a request is sent.
  expect(await page.locator('.pv-now').evaluate((it) => getComputedStyle(it).getPropertyValue('--whole-int'))).toBe(dragged);
  // The field follows the line, and the preview the field.
  await expect(number).toHaveValue(dragged);
  await checkAppearance(page, 'alert-line-dragged');
  await expect(page.locator('.pv figcaption')).toContainText(dragged);
  await expect(page.getByLabel('Name')).toHaveValue('By the line');

  // By keyboard to the bottom, where every rejected write fires; it stays within the threshold's bounds.
  await line.focus();
  await page.keyboard.press('ArrowDown');
  expect(Number(await line.inputValue())).toBeLessThan(Number(dragged));
  await page.keyboard.press('Home');
  await expect(number).toHaveValue(/^[01]$/);
  // A typed number moves the line, also back to where the preview has drawn it last.
  await number.fill(dragged);
  await expect(line).toHaveValue(dragged);
  await number.fill('7');
  await expect(line).toHaveValue('7');
  await line.focus();
  await page.keyboard.press('ArrowUp');
  const wanted = await line.inputValue();
  await expect(number).toHaveValue(wanted);
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByText('Rule, version 1').first()).toBeVisible();
  await expect(number).toHaveValue(wanted);
  await dragTo(page, 0.3);
  await expect(page.locator('.pv figcaption')).toContainText(`saved ${wanted} dashed`);
  await checkAppearance(page, 'alert-line');
  await page.getByRole('button', { name: /^Remove the rule/ }).click();
});

test('a silence requires an end, shows its matches, suppresses and is ended', async ({ page, api, forgive }) => {
  test.setTimeout(150_000);
  forgive(/status of 422/);
  await refusedWriteFires(page);
  // Started from the group: its labels are the matchers.
  await line(page).getByRole('link', { name: /^Silence Fencing rejections/ }).click();
  await expect(page.getByLabel('Value of matcher 1, * as wildcard')).toHaveValue('fencing_rejections');
  await expect(page.getByRole('heading', { name: /alerts? match(es)? now/ })).toBeVisible();
  // The running times of the matching alerts are not announced.
  await expect(page.locator('.drawer [aria-live] table, .drawer [role=status] table')).toHaveCount(0);
  // "until 09:00" is in the time zone of the browser, also across a change of clocks.
  const nine = async () => new Date(Number(await page.locator('input[name=nine]').inputValue()));
  await expect.poll(async () => (await nine()).getTime()).toBeGreaterThan(Date.now());
  expect(await page.evaluate((at) => new Date(at).toTimeString().slice(0, 8), (await nine()).getTime())).toBe('09:00:00');
  await checkAppearance(page, 'alert-silence');
  await page.getByLabel('Comment').fill('The ledger is being moved');
  await page.getByRole('radio', { name: 'custom…' }).check();
  await page.getByLabel('Custom length').fill('900d');
  await page.getByRole('button', { name: /^Silence/ }).click();
  await expect(page.getByLabel('Custom length')).toHaveAttribute('aria-invalid', 'true');
  const red = await page.locator('.lengths .fault').evaluate((it) => getComputedStyle(it).color);
  await expect(page.getByLabel('Custom length')).toHaveCSS('border-top-color', red);
  await expect(page.getByLabel('Comment')).toHaveValue('The ledger is being moved');
  await checkAppearance(page, 'alert-silence-refused');
  await page.getByRole('radio', { name: '2 h', exact: true }).check();
  // The list follows the matchers.
  const count = page.locator('.drawer-body').getByRole('status').filter({ hasText: / now$/ });
  await count.evaluate((it) => it.setAttribute('data-kept', ''));
  await page.getByLabel('Value of matcher 1, * as wildcard').fill('no_such_rule');
  await expect(page.getByRole('heading', { name: '0 alerts match now' })).toBeVisible();
  // Announced: the element was there before its text changed.
  await expect(page.locator('[data-kept]')).toHaveText(/^0\salerts match now$/);
  await page.getByLabel('Value of matcher 1, * as wildcard').fill('fencing_*');
  await page.getByRole('button', { name: /^Silence \d+\salerts? for 2\sh/ }).click();
  await expect(page.getByText('Silenced: new matching alerts send no notification')).toBeVisible();
  const kept = page.locator('.al-q', { hasText: 'The ledger is being moved' });
  await expect(kept).toContainText('visitor');
  await expect(kept).toContainText(/ends in (1\sh\s59\sm|2\sh)/);
  expect((await api<Alerts>('alerts')).alerts.some((it) => it.rule === 'fencing_rejections' && it.state === 'firing')).toBe(true);
  await page.getByRole('link', { name: /^silenced/ }).click();
  await expect(line(page)).toContainText('silenced');
  await checkAppearance(page, 'alerts-silenced');
  await kept.getByRole('button', { name: /^End in 2 h/ }).click();
  await expect(page.getByText('The end of the silence is changed.')).toBeVisible();
  await kept.getByRole('link', { name: /^Clone the silence/ }).click();
  await expect(page.getByLabel('Comment')).toHaveValue('The ledger is being moved');
  await page.getByRole('link', { name: 'Close', exact: true }).click();
  await kept.getByRole('button', { name: /^End now: the silence on/ }).click();
  await expect(page.getByText('The silence has ended')).toBeVisible();
});

test('the focus stays in the list whose matcher was removed', async ({ page }) => {
  await page.goto('/alerts/silences/new?rule=fencing_rejections&backend=builtin');
  await hydrated(page);
  await page.getByRole('button', { name: 'Remove matcher 1' }).press('Enter');
  await expect(page.getByLabel('Label of matcher 1')).toHaveCount(0);
  await expect(page.locator('.chips')).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(page.getByLabel('Label of matcher 2')).toBeFocused();
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
  await expect(page).toHaveURL(/rules\/new/);
  await expect(page.getByLabel('Name')).toHaveValue('By hand');
  const save = page.getByRole('button', { name: 'Save rule' });
  await page.getByLabel('Message').focus();
  for (let steps = 0; steps < 6 && !await save.evaluate((it) => it === document.activeElement); steps++) {
    await page.keyboard.press('Tab');
  }
  await expect(save).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByText('Rule, version 1').first()).toBeVisible();
  await page.getByRole('button', { name: /^Remove the rule/ }).click();
});

test('a rule that another tab removes keeps its input, and is saved as a new one', async ({ page, context, forgive }) => {
  forgive(/status of 404/);
  await page.goto('/alerts/rules/new?condition=fencing_rejections');
  await hydrated(page);
  await page.getByLabel('Name').fill('Removed meanwhile');
  await page.getByRole('button', { name: 'Save rule' }).click();
  await expect(page.getByText('Rule, version 1').first()).toBeVisible();
  await page.getByLabel('Name').fill('Typed meanwhile');
  const other = await context.newPage();
  await other.goto(page.url());
  await other.getByRole('button', { name: /^Remove the rule/ }).click();
  await expect(other.getByText('The rule is removed')).toBeVisible();
  await other.close();
  await expect(page.getByText('The rule was removed')).toBeVisible();
  await expect(page.getByLabel('Name')).toHaveValue('Typed meanwhile');
  await accessible(page);
  await page.getByRole('button', { name: 'Save as a new rule' }).click();
  await expect(page.getByText('Rule, version 1').first()).toBeVisible();
  await expect(page.getByLabel('Name')).toHaveValue('Typed meanwhile');
  await page.getByRole('button', { name: /^Remove the rule/ }).click();
  await expect(page.getByText('The rule is removed')).toBeVisible();
});

test.describe('without a script, on a phone', () => {
  test.use({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });

  test('alerts page, rule and silence fit and work', async ({ page }) => {
    await page.goto('/alerts');
    await fits(page);
    await page.getByRole('link', { name: 'Long-held', exact: true }).last().click();
    // Waits for the load event, and so for the style sheet.
    await page.waitForURL(/\/alerts\/rules\//);
    await fits(page);
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.waitForLoadState('load');
    await expect(page.locator('.re-preview')).toContainText('last 7 d');
    await fits(page);
    const line = page.getByLabel(/^Threshold line/);
    if (await line.isVisible()) {
      await line.focus();
      await page.keyboard.press('ArrowUp');
      const [at, unit] = [Number(await line.inputValue()), page.getByRole('textbox', { name: 'Held longer than … × the lock\'s own p95 hold time' })];
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
