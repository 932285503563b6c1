// Starts a program, waits for the address that it prints, and ends it by its process id.
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Running {
  url: string;
  /** Works once: signs in (the demo), or makes the first admin (an empty store). */
  link?: string;
  process: ChildProcess;
  stop: () => Promise<void>;
}

const ADDRESS = /http:\/\/127\.0\.0\.1:\d+\S*/;

/** Resolves with the first http address on standard output that matches; rejects with all output when it ends before. An
    address that goes on after the port is a link. */
export async function run(binary: string, args: string[], patienceMs: number, wanted = ADDRESS): Promise<Running> {
  // The program reads its configuration from such variables too.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LEASEHOLD_')));
  const child = spawn(binary, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr!.on('data', (bytes: Buffer) => { said += bytes.toString(); });
  const stop = async (): Promise<void> => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
  };
  const printed = new Promise<URL>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no address within ${patienceMs} ms: ${said}`)), patienceMs);
    createInterface({ input: child.stdout! }).on('line', (line) => {
      said += `${line}\n`;
      const found = wanted.exec(line);
      if (found) { clearTimeout(late); resolve(new URL(found[0])); }
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${binary} ended with ${code}: ${said}`)));
  });
  const address = await printed.catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const link = address.pathname === '/' ? undefined : address.href;
  return { url: address.origin, link, process: child, stop };
}

export function needed(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set: run the tests through scripts/e2e`);
  return value;
}
