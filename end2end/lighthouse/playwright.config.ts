// Configuration of the Lighthouse measurements: like the tests, from this folder. Started by scripts/lighthouse.
import { defineConfig } from '@playwright/test';
import base from '../playwright.config';

export default defineConfig({
  ...base,
  projects: [{ name: 'lighthouse' }],
  workers: 1,
  testDir: '.',
  testMatch: '*.spec.ts',
  outputDir: '../test-results/lighthouse',
});
