import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type CallOptions, Sandbox, type SandboxEvent } from "holdfast";

export const root = resolve(import.meta.dir, "..");
export const holdfastBin = join(root, "packages/cli/bin/holdfast");

export interface TestServerOptions {
  readonly dataDir?: string;
  /** More of what `holdfast serve` takes. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of this clone's own program: another release's, or one that was tampered with. */
  readonly command?: readonly string[];
}

/** A real server as a child process, on a port and in a data dir of its own. */
export class TestServer {
  readonly dataDir: string;
  url = "";
  output = "";
  #port = 0;
  #child: Bun.Subprocess<"ignore", "pipe", "pipe"> | undefined;
  readonly #options: TestServerOptions;

  private constructor(options: TestServerOptions) {
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "holdfast-e2e-"));
    this.#options = options;
  }

  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const server = new TestServer(options);
    await server.boot();
    return server;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get token(): string {
    return readFileSync(join(this.dataDir, "token"), "utf8").trim();
  }

  /** What SDK calls need to find it. */
  get at(): CallOptions {
    return { url: this.url, token: this.token };
  }

  /** Resolves when it has ended, however that came. */
  get exited(): Promise<number> {
    return this.#child?.exited ?? Promise.resolve(0);
  }

  /** Starts it, or starts it again on the same port. */
  async boot(): Promise<void> {
    const { command = [holdfastBin, "serve"], args = [], env } = this.#options;
    const place = ["--port", String(this.#port), "--data-dir", this.dataDir];
    const child = Bun.spawn([...command, ...place, ...args], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      // Tests count instances; whoever is about spares asks for them.
      env: { ...process.env, HOLDFAST_SPARES: "0", ...env },
    });
    this.#child = child;
    void this.#collect(child.stderr);
    const ready = await this.#collect(child.stdout, /URL: +(\S+)[\s\S]*Ctrl-C/);
    if (ready === undefined) throw new Error(`the server did not start:\n${this.output}`);
    this.url = ready;
    this.#port = Number(new URL(ready).port);
  }

  async signal(name: NodeJS.Signals): Promise<number> {
    this.#child?.kill(name);
    return (await this.#child?.exited) ?? 0;
  }

  async restart(name: NodeJS.Signals): Promise<void> {
    await this.signal(name);
    await this.boot();
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = {
      Authorization: `Bearer ${this.token}`,
      "Content-Type": "application/json",
      ...init.headers,
    };
    return fetch(`${this.url}${path}`, { ...init, headers });
  }

  /** Deletes every sandbox, ends the server and removes its data dir. */
  async dispose(): Promise<void> {
    if (this.#child?.exitCode !== null || this.#child?.signalCode !== null) await this.boot();
    try {
      await this.deleteAll();
    } finally {
      await this.signal("SIGTERM");
      rmSync(this.dataDir, { recursive: true, force: true });
    }
  }

  async deleteAll(): Promise<void> {
    await Promise.all((await Sandbox.list(this.at)).map((sandbox) => sandbox.delete({ force: true })));
  }

  /** Keeps the output, and resolves with what `until` finds in it; at its end, with nothing. */
  async #collect(stream: ReadableStream<Uint8Array>, until?: RegExp): Promise<string | undefined> {
    const from = this.output.length;
    const decoder = new TextDecoder();
    const found = Promise.withResolvers<string | undefined>();
    const reading = async () => {
      for await (const chunk of stream) {
        this.output += decoder.decode(chunk, { stream: true });
        const match = until?.exec(this.output.slice(from));
        if (match) found.resolve(match[1]);
      }
      found.resolve(undefined);
    };
    void reading();
    return found.promise;
  }
}

/** Runs a program to its end. */
export async function run(
  command: string[],
  options: { env?: Record<string, string>; cwd?: string; stdin?: string } = {},
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const child = Bun.spawn(command, {
    stdin: options.stdin === undefined ? "ignore" : new TextEncoder().encode(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
    cwd: options.cwd ?? root,
    env: { ...ownEnvironment(), ...options.env },
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, stdout, stderr };
}

/** Without what `npm test` tells its own scripts: another npm below us must not take it for its user's settings. */
export function ownEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
}

/** The host's view: processes whose command line contains the text. */
export async function hostProcesses(text: string): Promise<string[]> {
  const { stdout } = await run(["ps", "-eo", "pid,args", "--no-headers"]);
  return stdout.split("\n").filter((line) => line.includes(text));
}

/** The host's number of a running sandbox's keeper: PID 1 of a namespace, which no process inside can pretend to be. */
export async function keeperPid(sandbox: Sandbox): Promise<number> {
  const { generation } = (await sandbox.refresh()).info;
  const named = await hostProcesses(`hf-${sandbox.id}-g${generation}`);
  const keeper = named.map((line) => Number.parseInt(line, 10)).find(isFirstInNamespace);
  if (keeper === undefined) throw new Error(`no keeper among: ${named.join("; ")}`);
  return keeper;
}

/** Waits for the next entry of this type in its timeline. To follow it is to look, not to use. */
export async function nextEvent(
  sandbox: Sandbox,
  type: string,
  options: { since?: number; signal?: AbortSignal } = {},
): Promise<SandboxEvent> {
  for await (const event of sandbox.followEvents(options)) if (event.type === type) return event;
  throw new Error(`the timeline of ${sandbox.name} ended without "${type}"`);
}

/** Ends the keeper of a running sandbox as an out-of-memory killer would, and waits until that was noticed. */
export async function killKeeper(sandbox: Sandbox): Promise<void> {
  process.kill(await keeperPid(sandbox), "SIGKILL");
  while ((await sandbox.refresh()).state !== "stopped") await Bun.sleep(10);
}

function isFirstInNamespace(pid: number): boolean {
  return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}
