// Owns how the browser tests run: Debian's Chromium, one worker (the machine also runs the servers), no retries that hide a
// fault. One project per program under test, so that only one of them runs at a time.
import { defineConfig } from '@playwright/test';

export default defineConfig({
  outputDir: './test-results/runs',
  timeout: 60_000,
  expect: { timeout: 15_000 },
  workers: 1,
  retries: 0,
  forbidOnly: Boolean(process.env.CI),
  reporter: [['list']],
  projects: [
    { name: 'gallery', testDir: './tests/gallery' },
    { name: 'demo', testDir: './tests/demo' },
  ],
  use: {
    // A trace doubles the time of a test: asked for with TRACE=1.
    trace: process.env.TRACE ? 'retain-on-failure' : 'off',
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync',
      ],
    },
  },
});
