import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AdmitMessage, FENCE_HEADER, type KeeperBoot } from "@holdfast/protocol";
import { startKeeper } from "../keeper.ts";
import { FakeTimers } from "../terminal/fake-timers.ts";

/** A keeper in this process, whose time a test moves. */
export async function inProcessKeeper(options: { dir?: string; admit?: Partial<AdmitMessage> } = {}) {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  const boot: KeeperBoot = {
    secret: "a-secret-of-at-least-32-characters",
    sandboxId: `sbx-${crypto.randomUUID()}`,
    instanceId: "instance-1",
    generation: 7,
    socketPath: join(dir, "keeper.sock"),
    stateDir: join(dir, "state"),
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: dir },
    cwd: dir,
  };
  const timers = new FakeTimers();
  const keeper = await startKeeper(boot, { timers });
  const request = (path: string, init: RequestInit = {}) => {
    const headers = { Authorization: `Bearer ${boot.secret}`, [FENCE_HEADER]: "1" };
    return fetch(`http://keeper${path}`, { ...init, headers, unix: boot.socketPath });
  };
  const call = async (path: string, body?: unknown) => {
    const response = await request(
      path,
      body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
    );
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: a test states what it expects by comparing, not by types
    return { status: response.status, body: (text === "" ? undefined : JSON.parse(text)) as any };
  };
  const { instanceId, generation } = boot;
  await call("/v1/admit", { instanceId, generation, fence: 1, ...options.admit });
  return {
    timers,
    dir,
    over: keeper.over,
    request,
    call,
    async [Symbol.asyncDispose]() {
      keeper.shutdown({ cause: "told" });
      await keeper.over;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
