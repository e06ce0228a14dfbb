import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FENCE_HEADER, type KeeperBoot } from "@holdfast/protocol";
import { hasEnvironmentEntry, listProcesses, signalExactly } from "./engine/proc-table.ts";

/** A real keeper in a process of its own, as a test talks to it. */
export interface TestKeeper extends AsyncDisposable {
  readonly boot: KeeperBoot;
  readonly child: Bun.Subprocess;
  /** Where this test may write. */
  readonly dir: string;
  request(path: string, init?: RequestInit): Promise<Response>;
  /** A POST with a body, a GET without. Gives the status beside the answer, so that a test compares both at once. */
  call(path: string, body?: unknown): Promise<Answer>;
  /** Ends it as a crash would, with its work; the directory stays for the next keeper. */
  crash(): Promise<void>;
  openFds(): number;
  /** Processes of its sandbox. */
  processes(): number[];
}

// biome-ignore lint/suspicious/noExplicitAny: a test states what it expects by comparing, not by types
type Answer = { status: number; body: any };

const SECRET = "a-secret-of-at-least-32-characters";

/** Starts a keeper from source and admits it. Disposing ends it and removes everything. */
export async function startTestKeeper(options: StartOptions = {}): Promise<TestKeeper> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  const boot: KeeperBoot = {
    secret: SECRET,
    sandboxId: `sbx-${crypto.randomUUID()}`,
    instanceId: "instance-1",
    generation: 1,
    socketPath: join(dir, "keeper.sock"),
    stateDir: join(dir, "state"),
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: dir },
    cwd: dir,
    ...options.boot,
  };
  const bootFile = join(dir, "boot.json");
  writeFileSync(bootFile, JSON.stringify(boot), { mode: 0o600 });
  const argv = options.argv ?? [process.execPath, join(import.meta.dir, "main.ts"), "--boot-fd", "3", "test"];
  const child = Bun.spawn(["sh", "-c", 'exec "$@" 3<"$0"', bootFile, ...argv], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {},
  });
  const keeper = clientOf({ boot, child, dir, socketPath: options.socketPath ?? boot.socketPath });
  await untilItAnswers(keeper);
  if (options.admit !== "no")
    await keeper.call("/v1/admit", { instanceId: boot.instanceId, generation: 1, fence: 1 });
  return keeper;
}

export interface StartOptions {
  readonly dir?: string;
  readonly boot?: Partial<KeeperBoot>;
  readonly admit?: "no";
  /** What to start instead of the keeper's source; descriptor 3 has the boot message. */
  readonly argv?: readonly string[];
  /** Where the socket is seen from here, if not where the keeper sees it. */
  readonly socketPath?: string;
}

function clientOf(parts: {
  boot: KeeperBoot;
  child: Bun.Subprocess;
  dir: string;
  socketPath: string;
}): TestKeeper {
  const { boot, child, dir, socketPath } = parts;
  const headers = { Authorization: `Bearer ${boot.secret}`, [FENCE_HEADER]: "1" };
  const request = (path: string, init: RequestInit = {}) =>
    fetch(`http://keeper${path}`, {
      ...init,
      headers: { ...headers, ...(init.headers as Record<string, string>) },
      unix: socketPath,
    });
  const living = () =>
    listProcesses().filter(({ pid }) => hasEnvironmentEntry(pid, `HOLDFAST_SANDBOX_ID=${boot.sandboxId}`));
  return {
    boot,
    child,
    dir,
    request,
    async call(path, body) {
      const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      const response = await request(path, init);
      const text = await response.text();
      return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
    },
    async crash() {
      child.kill("SIGKILL");
      await child.exited;
      // Until nobody is left: a killed process takes a moment, and may have started another in its last one.
      for (let left = living(); left.length > 0; left = living()) {
        for (const entry of left) signalExactly(entry, "SIGKILL");
        await Bun.sleep(2);
      }
    },
    openFds: () => readdirSync(`/proc/${child.pid}/fd`).length,
    processes: () => living().map(({ pid }) => pid),
    async [Symbol.asyncDispose]() {
      // Not by a signal: between us and a keeper in its own namespaces is a launcher that would not pass it on.
      if (child.exitCode === null && child.signalCode === null) {
        const headers = { [FENCE_HEADER]: String(Number.MAX_SAFE_INTEGER).slice(0, 15) }; // above any that a test used
        await request("/v1/shutdown", { method: "POST", headers }).catch(() => child.kill("SIGKILL"));
      }
      await child.exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function untilItAnswers(keeper: TestKeeper): Promise<void> {
  for (;;) {
    if (keeper.child.exitCode !== null) throw new Error(`the keeper ended at once: ${keeper.child.exitCode}`);
    try {
      await keeper.request("/v1/keeper");
      return;
    } catch {
      await Bun.sleep(5);
    }
  }
}
