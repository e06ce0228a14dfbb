import { afterAll, beforeAll, expect, test } from "bun:test";
import { Sandbox, type SandboxEvent } from "holdfast";
import { nextEvent, TestServer } from "./harness.ts";

const LIFETIME_SECONDS = 2;
/** Long enough that any of them would have been reaped, were it not held awake. */
const HELD_MS = 3 * LIFETIME_SECONDS * 1000;

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.dispose());

/** All at once: each of them mostly waits. */
function whileIdle(title: string, work: (sandbox: Sandbox) => Promise<void>): void {
  const spec = { lifetimeSeconds: LIFETIME_SECONDS, network: "none" } as const;
  test.concurrent(title, async () => work(await Sandbox.create(spec, server.at)), 60_000);
}

whileIdle("a command that takes longer than the lifetime is not cut off", async (sandbox) => {
  const { exitCode, stdout, generation } = await sandbox.exec(`sleep ${HELD_MS / 1000}; echo done`);
  const answeredAt = Date.now();
  expect({ exitCode, stdout, generation }).toEqual({ exitCode: 0, stdout: "done\n", generation: 1 });
  // Idle time counts from the end of the command, not from its beginning.
  expect(idleMs(await nextEvent(sandbox, "gone"), answeredAt)).toBeGreaterThan(LIFETIME_SECONDS * 900);
});

const builds = {
  "burns CPU": `timeout ${HELD_MS / 1000} sh -c 'while :; do :; done'; echo built > /workspace/result`,
  "writes output": `for i in $(seq ${HELD_MS / 100}); do echo $i; sleep 0.1; done; echo built > /workspace/result`,
};
for (const [what, command] of Object.entries(builds)) {
  whileIdle(`a build in the background that ${what} is not cut off`, async (sandbox) => {
    await sandbox.startProcess(command);
    expect(await nextEvent(sandbox, "gone")).toMatchObject({ cause: "idle", detail: { generation: 1 } });
    expect(await sandbox.exec("cat /workspace/result")).toMatchObject({ stdout: "built\n", generation: 2 });
  });
}

whileIdle("an idle dev server does not keep its sandbox alive, nor does looking at it", async (sandbox) => {
  const dev = await sandbox.startProcess("python3 -u -m http.server 8000");
  await dev.waitForLog(/Serving/);
  const startedAt = Date.now();
  const over = new AbortController();
  const looking = lookAgainAndAgain(sandbox, over.signal);
  const gone = await nextEvent(sandbox, "gone");
  over.abort();
  expect(gone).toMatchObject({ cause: "idle", detail: { generation: 1, evidence: "exited" } });
  expect(Date.parse(gone.at) - startedAt).toBeLessThan(HELD_MS + 10_000);
  expect(await looking).toBeGreaterThan(10);
});

whileIdle("an attached terminal holds it, and says so; a detached one does not", async (sandbox) => {
  const terminal = await sandbox.terminal({ id: "main" });
  await aliveFor(sandbox, HELD_MS);
  expect((await sandbox.why()).heldAwakeBy).toEqual(["terminal main has a viewer"]);
  await terminal.close();
  const closedAt = Date.now();
  const gone = await nextEvent(sandbox, "gone");
  expect(gone).toMatchObject({ cause: "idle" });
  expect(idleMs(gone, closedAt)).toBeGreaterThan(LIFETIME_SECONDS * 900);
});

whileIdle("a touch now and then holds it", async (sandbox) => {
  const over = performance.now() + HELD_MS;
  while (performance.now() < over) {
    await sandbox.touch();
    await Bun.sleep(LIFETIME_SECONDS * 250);
  }
  expect((await sandbox.refresh()).info).toMatchObject({ state: "running", generation: 1 });
  expect(await nextEvent(sandbox, "gone")).toMatchObject({ cause: "idle" });
});

whileIdle("scenario 13: an open turn holds it, and idle time counts from the turn's end", async (sandbox) => {
  const turn = await sandbox.beginTurn();
  await aliveFor(sandbox, HELD_MS);
  expect((await sandbox.why()).heldAwakeBy).toEqual([`turn ${turn.turnId} is open`]);
  await turn.end();
  const endedAt = Date.now();
  expect(idleMs(await nextEvent(sandbox, "gone"), endedAt)).toBeGreaterThan(LIFETIME_SECONDS * 900);
});

whileIdle("what is kept however idle it is goes on", async (sandbox) => {
  await sandbox.update({ onIdle: "keep" });
  await aliveFor(sandbox, HELD_MS);
  expect((await sandbox.why()).next).toContain("idleness does not end it");
});

/** That something does not happen shows only in time that passes. */
async function aliveFor(sandbox: Sandbox, ms: number): Promise<void> {
  const over = AbortSignal.timeout(ms);
  const ended = await nextEvent(sandbox, "gone", { signal: over }).catch((error: unknown) => error);
  expect(ended).toBe(over.reason);
  expect((await sandbox.refresh()).info).toMatchObject({ state: "running", generation: 1 });
}

/** The status, the logs, the events and the reasons, until it is over. How many times. */
async function lookAgainAndAgain(sandbox: Sandbox, over: AbortSignal): Promise<number> {
  let looks = 0;
  for (; !over.aborted; looks++) {
    const { processes } = (await (await server.fetch(`/v1/sandboxes/${sandbox.id}/processes`)).json()) as {
      processes?: { processId: string }[];
    };
    const id = processes?.[0]?.processId;
    const paths = ["", "/why", "/events", "/terminals", `/processes/${id}`, `/processes/${id}/logs`];
    await Promise.all(
      paths.map(async (path) => (await server.fetch(`/v1/sandboxes/${sandbox.id}${path}`)).text()),
    );
    await Bun.sleep(50);
  }
  return looks;
}

function idleMs(gone: SandboxEvent, since: number): number {
  expect(gone.cause).toBe("idle");
  return Date.parse(gone.at) - since;
}
