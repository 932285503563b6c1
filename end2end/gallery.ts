// The design gallery: the real pages with generated locks, whose scene and stream a test may change. Started once per worker.
import { test as base, expect } from './fixtures';
import { needed, run, type Running } from './server';

interface Workers { gallery: Running }
interface Scenes {
  scene: (name: string) => Promise<void>;
  stream: (how: 'on' | 'off' | 'silent' | 'overdue') => Promise<void>;
}

export const test = base.extend<Scenes, Workers>({
  gallery: [async ({}, use) => {
    const running = await run(needed('LEASEHOLD_GALLERY'), [], 120_000);
    await use(running);
    await running.stop();
  }, { scope: 'worker' }],

  baseURL: async ({ gallery }, use) => use(gallery.url),

  scene: async ({ gallery }, use) => {
    await use((name) => change(gallery, `scene/${name}`));
    await change(gallery, 'scene/full');
  },

  stream: async ({ gallery }, use) => {
    await use((how) => change(gallery, `stream/${how}`));
    await change(gallery, 'stream/on');
  },
});

async function change(gallery: Running, path: string): Promise<void> {
  const answer = await fetch(`${gallery.url}/gallery/${path}`, { method: 'POST' });
  expect(answer.status, path).toBe(204);
}

export { expect, hydrated, open, openLive, liveBar, rows, accessible, fits, VIEWPORTS, checkAppearance } from './fixtures';
