// A server with an empty store: the printed link makes the first admin. Its secret is the fragment, which the page's script
// moves into the form and out of the address.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accessible, expect, test as base } from '../../fixtures';
import { needed, run, type Running } from '../../server';

const SETUP_LINK = /http:\/\/127\.0\.0\.1:\d+\/setup#\S+/;
const PASSWORD = 'correct horse battery';

const test = base.extend<{ fresh: Running & { secret: string } }>({
  fresh: async ({}, use) => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-setup-'));
    const config = join(folder, 'leasehold.toml');
    writeFileSync(config, `listen = "127.0.0.1:0"\nstore = "sqlite:${join(folder, 'leasehold.db')}"\n`);
    const server = await run(needed('LEASEHOLD_BIN'), ['serve', '--config', config], 60_000, SETUP_LINK);
    await use({ ...server, secret: new URL(server.link ?? '').hash.slice(1) });
    await server.stop();
    rmSync(folder, { recursive: true });
  },
});

test('the setup page takes the secret from the fragment, and the link works once', async ({ page, fresh, forgive }) => {
  forgive(/status of 410/);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(fresh.link ?? '');
  await expect(page.locator('input[name=link]')).toHaveValue(fresh.secret);
  await expect(page.getByLabel('Setup link')).toBeHidden();
  await expect(page).toHaveURL(`${fresh.url}/setup`);
  await accessible(page);
  await page.getByLabel('Your name').fill('ada');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create admin' }).click();
  await expect(page).toHaveURL(`${fresh.url}/`);
  expect(asked.filter((url) => url.includes('link='))).toEqual([]);
  await page.goto(fresh.link ?? '');
  await expect(page.getByRole('heading', { name: 'Link no longer valid' })).toBeVisible();
});

test.describe('without a script', () => {
  test.use({ javaScriptEnabled: false });

  test('the setup link is pasted by hand, whole', async ({ page, fresh }) => {
    await page.goto(fresh.link ?? '');
    await page.getByLabel('Setup link').fill(fresh.link ?? '');
    await page.getByLabel('Your name').fill('ada');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create admin' }).click();
    await expect(page).toHaveURL(`${fresh.url}/`);
  });
});
