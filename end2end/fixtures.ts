// Fixtures of every test: a page on which any console error or warning, exception or dialog fails the test, and checks of
// a page's appearance. gallery.ts and demo.ts start the program that serves the page.
import { readFileSync } from 'node:fs';
import { test as base, expect, type Page } from '@playwright/test';
import type { AxeResults, RunOptions } from 'axe-core';

interface Watched {
  quiet: void;
  /** Accepts messages that the test itself provokes: a refused stream, a 404. */
  forgive: (pattern: RegExp) => void;
}

export const test = base.extend<Watched>({
  forgive: async ({ page: _page }, use, info) => {
    await use((pattern) => info.annotations.push({ type: 'forgiven', description: pattern.source }));
  },

  quiet: [async ({ page }, use, info) => {
    const faults: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) {
        faults.push(`${message.type()}: ${message.text()} (${message.location().url})`);
      }
    });
    page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await use();
    const forgiven = info.annotations.filter((it) => it.type === 'forgiven').map((it) => new RegExp(it.description ?? ''));
    expect(faults.filter((fault) => !forgiven.some((pattern) => pattern.test(fault)))).toEqual([]);
  }, { auto: true }],
});

export { expect };

/** Waits until the page is hydrated. */
export async function hydrated(page: Page): Promise<void> {
  await expect(page.locator('html[data-hydrated]')).toBeAttached();
}

export async function open(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await hydrated(page);
}

/** Waits until the page is hydrated and events of the stream arrive. */
export async function openLive(page: Page, path: string): Promise<void> {
  await open(page, path);
  await expect(liveBar(page)).toContainText('Live');
}

export const liveBar = (page: Page) => page.getByRole('group', { name: 'age of the data' });

/** Rows of the list that are drawn. */
export const rows = (page: Page) => page.locator('table.locks tr[data-row]');

/** The axe rules that depend on colors. */
const OF_COLORS = ['color-contrast', 'link-in-text-block'];

/** Defines `axe` in a page. */
const AXE = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** No accessibility violation of all rules, or of the named ones. Pages have no frames, so one run checks the whole page. */
export async function accessible(page: Page, rules: string[] = []): Promise<void> {
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(AXE);
  // Nodes that pass are checked and not described: the selectors of thousands of them take longer than the rules.
  const options: RunOptions = { resultTypes: ['violations'] };
  if (rules.length > 0) options.runOnly = { type: 'rule', values: rules };
  const violations = await page.evaluate(async (how) => {
    const { axe } = window as unknown as { axe: { run: (of: Document, how: RunOptions) => Promise<AxeResults> } };
    return (await axe.run(document, how)).violations;
  }, options);
  const messages = violations.flatMap((it) => it.nodes.map((node) => {
    const why = [...node.any, ...node.all, ...node.none][0]?.message ?? it.help;
    return `${it.id}: ${node.target.join(' ')}: ${why}`;
  }));
  expect.soft(messages, 'accessibility').toEqual([]);
}

/** No element is wider than the page, so that a phone does not scroll it sideways. The failure names the elements. */
export async function fits(page: Page): Promise<void> {
  // Polled: while the style sheet is being applied, the page has another width for a moment.
  const wide = () => page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const out = [...document.body.querySelectorAll('*')].filter((it) => it.getBoundingClientRect().right > width + 1);
    return ['the page', ...out.map((it) => `${it.tagName.toLowerCase()}.${it.getAttribute('class') ?? ''}`).slice(0, 8)];
  });
  await expect.poll(wide, { message: 'wider than the window', timeout: 5_000 }).toEqual([]);
}

export const VIEWPORTS = (['light', 'dark'] as const).flatMap((theme) => [1440, 390].map((width) => ({ theme, width })));

/** Checks the page that is open in both themes and both widths; pictures go to test-results. Another theme changes only colors. */
export async function checkAppearance(page: Page, name: string, viewports = VIEWPORTS): Promise<void> {
  const checked = new Set<number>();
  for (const { theme, width } of viewports) {
    await test.step(`${theme}, ${width} wide`, async () => {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height: width > 600 ? 900 : 844 });
      await fits(page);
      await accessible(page, checked.has(width) ? OF_COLORS : []);
      checked.add(width);
      await page.screenshot({ path: `test-results/appearance/${name}-${theme}-${width}.png` });
    });
  }
}
