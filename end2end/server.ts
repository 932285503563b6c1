// Starts a program of ours, waits for the address that it prints, and ends it by its own process id.
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Running {
  url: string;
  /** Signs in, once; the demo's alone. */
  link?: string;
  process: ChildProcess;
  stop: () => Promise<void>;
}

/** Resolves with the first http address on standard output; rejects with all output when it ends before. An address that
    goes on after the port is a link. */
export async function run(binary: string, args: string[], patienceMs: number): Promise<Running> {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr!.on('data', (bytes: Buffer) => { said += bytes.toString(); });
  const address = await new Promise<URL>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no address within ${patienceMs} ms: ${said}`)), patienceMs);
    createInterface({ input: child.stdout! }).on('line', (line) => {
      said += `${line}\n`;
      const found = /http:\/\/127\.0\.0\.1:\d+\S*/.exec(line);
      if (found) { clearTimeout(late); resolve(new URL(found[0])); }
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${binary} ended with ${code}: ${said}`)));
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
  };
  const link = address.search ? address.href : undefined;
  return { url: address.origin, link, process: child, stop };
}

export function needed(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set: run the tests through scripts/e2e`);
  return value;
}
