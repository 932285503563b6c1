// Configuration of the browser tests: Debian's headless build of Chromium, which starts sooner and takes less time; one
// project with one worker per program under test. A failure is not retried. Figures for the record come from `--project demo` or
// `--project gallery` alone.
import { defineConfig } from '@playwright/test';

export default defineConfig({
  outputDir: './test-results/runs',
  // Hang limit of a test, not a speed limit: some visit many pages.
  timeout: 180_000,
  expect: { timeout: 30_000 },
  // One for each program: the demo's tests mostly wait, the gallery's mostly compute.
  workers: 2,
  forbidOnly: Boolean(process.env.CI),
  reporter: [['list']],
  projects: [
    { name: 'gallery', testDir: './tests/gallery', workers: 1 },
    { name: 'demo', testDir: './tests/demo', workers: 1 },
  ],
  use: {
    // A trace doubles the time of a test: enabled by TRACE=1.
    trace: process.env.TRACE ? 'retain-on-failure' : 'off',
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
      args: [
        '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync',
      ],
    },
  },
});
