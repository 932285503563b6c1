// Configuration of the README's screenshots: like the tests, from this folder. Started by scripts/screenshots.
import { defineConfig } from '@playwright/test';
import base from '../playwright.config';

export default defineConfig({
  ...base,
  projects: [{ name: 'screenshots' }],
  testDir: '.',
  testMatch: '*.spec.ts',
  outputDir: '../test-results/screenshots',
  use: { ...base.use, trace: 'off', viewport: { width: 1440, height: 900 }, deviceScaleFactor: 1 },
});
