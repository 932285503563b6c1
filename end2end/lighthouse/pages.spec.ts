// Lighthouse on every page of the demo, at a desk and on a phone: prints the scores, and fails if a goal at a desk is
// missed. A Chromium of its own, whose debugging port Lighthouse drives with the session's cookie.
import { chromium } from '@playwright/test';
import lighthouse, { desktopConfig } from 'lighthouse';
import { type Backend, expect, type Locks, test } from '../demo';

const GOAL = 95;
const INTERACTIVE_MS = 1_500;
const SHIFT = 0.05;
const PATHS = [
  '/', '/locks', '/contention', '/fencing', '/waits', '/alerts', '/alerts/rules/new?condition=contention', '/alerts/silences/new',
  '/alerts/receivers', '/audit', '/backends', '/settings', '/settings/users', '/settings/tokens', '/settings/sessions', '/settings/roles',
  '/settings/protected-prefixes', '/docs', '/docs/alerts',
];

interface Scores { performance: number; accessibility: number; practices: number; paintMs: number; interactiveMs: number; blockedMs: number; shift: number; failed: string[] }

/** The elements that an audit reports. */
function places(details: unknown): string {
  const { items = [] } = (details ?? {}) as { items?: { node?: { selector?: string } }[] };
  return items.map(({ node }) => node?.selector).slice(0, 3).join(' and ');
}

async function measure(url: string, port: number, cookie: string, isPhone: boolean): Promise<Scores> {
  const settings = {
    port,
    logLevel: 'error' as const,
    extraHeaders: { cookie },
    onlyCategories: ['performance', 'accessibility', 'best-practices'],
    // The event stream of a live page stays open, so the network is never idle.
    maxWaitForLoad: 10_000,
  };
  const attempt = async () => (await lighthouse(url, settings, isPhone ? undefined : desktopConfig))?.lhr;
  let report = await attempt();
  // Sometimes Chromium's trace lacks its beginning. Such a report has no scores.
  if (report?.runtimeError) report = await attempt();
  if (!report || report.runtimeError) throw new Error(`${url}: ${report?.runtimeError?.message ?? 'no report'}`);
  const { categories, audits } = report;
  const score = (name: string) => Math.round((categories[name]?.score ?? 0) * 100);
  const failed = ['accessibility', 'best-practices'].flatMap((name) => (categories[name]?.auditRefs ?? [])
    .filter(({ id, weight }) => weight > 0 && (audits[id]?.score ?? 1) < 1).map(({ id }) => `${id} at ${places(audits[id]?.details)}`));
  const figure = (name: string) => audits[name]?.numericValue ?? Number.NaN;
  return {
    performance: score('performance'),
    accessibility: score('accessibility'),
    practices: score('best-practices'),
    paintMs: Math.round(figure('largest-contentful-paint')),
    interactiveMs: Math.round(figure('interactive')),
    blockedMs: Math.round(figure('total-blocking-time')),
    shift: figure('cumulative-layout-shift'),
    failed,
  };
}

function missed(of: Scores): string[] {
  const low = (['performance', 'accessibility', 'practices'] as const).filter((name) => of[name] < GOAL);
  return [
    ...low.map((name) => `${name} ${of[name]}`),
    ...(of.interactiveMs <= INTERACTIVE_MS ? [] : [`interactive after ${of.interactiveMs} ms`]),
    ...(of.shift < SHIFT ? [] : [`shift ${of.shift}`]),
  ];
}

test('every page meets the goals of Lighthouse', async ({ demo, api }) => {
  test.setTimeout(3_600_000);
  // Waits until a backend of the demo is stale: a notice that appears during a run would count as the page's last paint.
  await expect.poll(async () => (await api<Backend[]>('backends')).map((it) => it.status), { timeout: 60_000 }).toContain('stale');
  const lock = (await api<Locks>('inventory?limit=500')).locks.find((it) => it.waiterCount);
  const alerts = await api<{ alerts: { rule: string }[] }>('alerts');
  const ofState = [`/locks/${lock?.backend}/${encodeURIComponent(lock?.resource ?? '')}?source=${lock?.source}`, `/alerts/rules/${alerts.alerts[0]?.rule}`];
  const only = process.env.PAGES?.split(' ');
  const isNamed = (path: string) => !only || only.some((name) => (name.endsWith('*') ? path.startsWith(name.slice(0, -1)) : path === name));
  const paths = [...PATHS, ...ofState].filter(isNamed);
  const cookie = demo.session.cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  const port = 20_000 + process.pid % 20_000;
  const browser = await chromium.launch({ ...test.info().project.use.launchOptions, args: [...(test.info().project.use.launchOptions?.args ?? []), `--remote-debugging-port=${port}`] });
  const faults: string[] = [];
  console.log('page | by | performance | accessibility | best practices | largest paint | interactive | blocked | shift | failed audits');
  for (const path of paths) {
    for (const by of ['desk', 'phone']) {
      const it = await measure(`${demo.url}${path}`, port, cookie, by === 'phone');
      console.log(`${path} | ${by} | ${it.performance} | ${it.accessibility} | ${it.practices} | ${it.paintMs} ms | ${it.interactiveMs} ms | ${it.blockedMs} ms | ${it.shift.toFixed(3)} | ${it.failed.join(', ')}`);
      if (by === 'desk') faults.push(...missed(it).map((fault) => `${path}: ${fault}`));
    }
  }
  await browser.close();
  expect(faults).toEqual([]);
});
