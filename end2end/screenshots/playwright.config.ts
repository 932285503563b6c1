// Owns how the README's pictures are taken: as the tests are run, but from this folder. Started by scripts/screenshots.
import { defineConfig } from '@playwright/test';
import base from '../playwright.config';

export default defineConfig({
  ...base,
  projects: [],
  testDir: '.',
  outputDir: '../test-results/screenshots',
  use: { ...base.use, trace: 'off', colorScheme: 'dark', viewport: { width: 1440, height: 900 }, deviceScaleFactor: 1 },
});
