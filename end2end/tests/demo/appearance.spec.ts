// Pages without a spec of their own, in both themes and widths: no console message, no axe violation, no overflow, a screenshot.
import { expect, checkAppearance, open, test } from '../../demo';

const PAGES: Record<string, string> = {
  users: '/settings/users',
  tokens: '/settings/tokens',
  sessions: '/settings/sessions',
  roles: '/settings/roles',
  waits: '/waits',
  docs: '/docs',
  runbooks: '/docs/alerts',
};

for (const [name, path] of Object.entries(PAGES)) {
  test(`${name} is accessible and fits in both themes and widths`, async ({ page }) => {
    await open(page, path);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(/\w/);
    await checkAppearance(page, `page-${name}`);
  });
}
