// Names chosen by an attacker must not run, hide, or lead to another lock.
import type { Page } from '@playwright/test';
import { expect, fits, liveBar, open, rows, test } from '../../gallery';

/** The full names as a user must see them: hidden characters are written out, and markup is text. */
const SEEN = [
  'hostile:<img src=x onerror=alert(1)>',
  'hostile:</title></script><script>alert(1)</script>&amp;',
  'hostile:\\u{202e}gpj.exe',
  'hostile:pay\\u{200b}out',
  'hostile:line\\u{a}break\\u{9}tab\\u{7}bell\\u{0}nul',
  'hostile:\\xff\\xfe not utf-8 \\\\ at all',
  'hostile:50% off?a=b&c#d',
  'hostile:"quoted" \'twice\' `thrice`',
  'hostile:שלום:مرحبا',
  'hostile:\u{1f512}\u{1f468}\\u{200d}\u{1f469}\\u{200d}\u{1f467}',
  ' hostile: leading and trailing ',
  'hostile/../../etc/passwd',
  '..',
  `hostile:${'long-name-'.repeat(1024)}:the-end`,
];
const LIST = '/locks?backend=redis-cache&state=healthy&sort=resource';

/** The title of the lock's page as plain text: the end of the name, whose white space the document collapses. */
function title(seen: string): string {
  const name = [...seen];
  const end = name.length > 80 ? `\u2026${name.slice(-80).join('')}` : seen;
  return `${end}, redis-cache · Leasehold`.replace(/ +/g, ' ').trim();
}

/** Elements that a name could have added, and characters that no text or label on the page may contain. */
async function injected(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found = [...document.querySelectorAll('img, iframe, object, embed, base, main script, main style, main b > script, meta[http-equiv]')]
      .map((it) => `element ${it.outerHTML.slice(0, 80)}`);
    for (const it of document.querySelectorAll('*')) {
      const handlers = it.getAttributeNames().filter((name) => name.startsWith('on'));
      found.push(...handlers.map((name) => `handler ${name}`));
    }
    const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/;
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const { parentElement, data } = texts.currentNode as Text;
      if (!parentElement?.closest('script, .sprite, pre') && hidden.test(data)) found.push(`text ${JSON.stringify(data)}`);
    }
    for (const it of document.querySelectorAll('[title], [aria-label]')) {
      const label = `${it.getAttribute('title') ?? ''}${it.getAttribute('aria-label') ?? ''}`;
      if (hidden.test(label)) found.push(`label ${JSON.stringify(label)}`);
    }
    return found;
  });
}

test('hostile names in the list add no element, handler or hidden character', async ({ page }) => {
  await open(page, '/locks?backend=builtin');
  const scripts = await page.locator('script').count();
  await page.setViewportSize({ width: 1440, height: 1600 });
  await open(page, LIST);
  await expect(rows(page)).toHaveCount(SEEN.length);
  expect(await injected(page)).toEqual([]);
  expect(await page.locator('script').count()).toBe(scripts);
  await expect(page).toHaveTitle('Locks · Leasehold');
  await fits(page);
  await page.setViewportSize({ width: 390, height: 1600 });
  await fits(page);
});

test('a right-to-left or very long name does not disturb its neighbours', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 1600 });
  await open(page, LIST);
  const boxes = await rows(page).evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
  expect(Math.max(...boxes) - Math.min(...boxes), 'rows of one height').toBeLessThanOrEqual(1);
  const sides = await rows(page).locator('.c-b').evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect().left));
  expect(new Set(sides).size).toBe(1);
});

for (const [index, seen] of SEEN.entries()) {
  const short = seen.length > 60 ? `${seen.slice(0, 20)}… of ${seen.length} characters` : JSON.stringify(seen);
  test(`the lock ${short} opens from the list and by its URL`, async ({ page }) => {
    await page.setViewportSize({ width: 1440, height: 1600 });
    await open(page, LIST);
    const links = rows(page).locator('.c-res a');
    await expect(links).toHaveCount(SEEN.length);
    const marks = seen.length > 60 ? ':the-end' : seen.trim();
    const at = (await links.allTextContents()).findIndex((text) => seen === '..' ? text === '..' : text.includes(marks));
    expect(at, `number ${index} is listed`).toBeGreaterThanOrEqual(0);
    await links.nth(at).click();
    for (const how of ['by the link', 'by its address']) {
      await expect.poll(() => page.locator('h1').textContent(), how).toBe(seen);
      await expect(liveBar(page)).toContainText('Live');
      expect(await injected(page), how).toEqual([]);
      expect(await page.title(), how).toBe(title(seen));
      await fits(page);
      await page.reload();
    }
  });
}

test('a hostile search stays text, in the field and in the result', async ({ page }) => {
  const hostile = '"><img src=x onerror=alert(1)>';
  await open(page, `/locks?q=${encodeURIComponent(hostile)}&prefix=${encodeURIComponent('</title><script>alert(2)</script>')}`);
  await expect(page.locator('main [data-search]')).toHaveValue(hostile);
  expect(await injected(page)).toEqual([]);
  await expect(page.getByRole('heading', { name: /match/ })).toBeVisible();
});
