import { afterAll, afterEach, beforeEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeServer } from "holdfast/testing";

export const launcher = join(import.meta.dir, "../bin/holdfast");

/** The real command line, in a folder of its own, with a new server that is a fake for each test of a file. */
export function setUpCli() {
  const home = mkdtempSync(join(tmpdir(), "holdfast-cli-"));
  let fake: FakeServer;
  let server: Bun.Server<undefined>;

  beforeEach(() => {
    fake = new FakeServer();
    server = Bun.serve({
      port: 0,
      idleTimeout: 0,
      development: false,
      fetch: (request) => fake.answer(request),
    });
  });
  afterEach(async () => {
    await server.stop(true);
    await fake.close();
  });
  afterAll(() => rmSync(home, { recursive: true }));

  function environment(): Record<string, string> {
    const PATH = process.env.PATH ?? "";
    return { PATH, HOME: home, HOLDFAST_URL: server.url.href, HOLDFAST_TOKEN: fake.token };
  }

  function start(args: string[], env: Record<string, string> = {}) {
    const streams = { stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const;
    return Bun.spawn([launcher, ...args], { cwd: home, env: { ...environment(), ...env }, ...streams });
  }

  function startWithPipe(args: string[]) {
    const options = { cwd: home, env: environment(), stdin: "pipe", stdout: "pipe" } as const;
    return Bun.spawn([launcher, ...args], options);
  }

  async function holdfast(args: string[], env: Record<string, string> = {}) {
    const child = start(args, env);
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    return { stdout, stderr, code };
  }

  return { home, environment, start, startWithPipe, holdfast, fake: () => fake };
}

export function text(stream: ReadableStream): Promise<string> {
  return new Response(stream).text();
}
