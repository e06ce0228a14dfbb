import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Holding, Provider } from "@holdfast/core";
import { SqliteStore } from "@holdfast/store";
import { FakeProvider } from "@holdfast/testkit";
import { Keepers } from "./keepers.ts";
import { silentLog } from "./log.ts";
import { Reconciler } from "./reconciler.ts";
import { Sandboxes } from "./sandboxes.ts";

/** Time passes for a sleeper alone, and at once. */
let now = 1_000_000;
const clock = {
  now: () => now,
  async sleep(ms: number, signal?: AbortSignal) {
    await Bun.sleep(5);
    if (!signal?.aborted) now += ms;
  },
};

let provider: FakeProvider;
let store: SqliteStore;
let server: ReturnType<typeof startServer>;

beforeEach(() => {
  now = 1_000_000;
  provider = new FakeProvider();
  store = new SqliteStore({ path: ":memory:", newId: () => "hfinstallation", now: () => now });
  server = startServer();
});

afterEach(async () => {
  await server.crash();
  provider.close();
  store.close();
});

function startServer() {
  const closing = new AbortController();
  const keepers = new Keepers();
  const parts = { store, providers: new Map([["fake", provider]]), keepers, clock };
  const reconciler = new Reconciler({ ...parts, random: () => 0.5, log: silentLog, closing: closing.signal });
  const sandboxes = new Sandboxes({ ...parts, defaultProvider: "fake", reconciler });
  const crash = async () => {
    closing.abort();
    keepers.close();
    await reconciler.close();
  };
  return { reconciler, sandboxes, crash };
}

async function running(name: string): Promise<Holding> {
  const { holding } = await server.sandboxes.wake(await server.sandboxes.create({ name }));
  return holding;
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await Bun.sleep(1);
}

const isGone = async (id: string) => (await store.holding(id)) === undefined;

test("a stop that hangs holds up nobody else's", async () => {
  const [stuck, other] = [await running("stuck"), await running("other")];
  const hanging = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const stop = provider.stop.bind(provider);
  provider.stop = async (ref) => {
    if (ref.sandboxId === stuck.sandbox.id) {
      hanging.resolve();
      await letGo.promise;
    }
    return stop(ref);
  };
  server.reconciler.start();
  await store.save(stuck, { sandbox: { desired: "deleted" }, lease: { dueAt: now } });
  await hanging.promise;
  await store.save(other, { sandbox: { desired: "deleted" }, lease: { dueAt: now } });
  await until(() => isGone(other.sandbox.id));
  expect(await isGone(stuck.sandbox.id)).toBe(false);
  letGo.resolve();
  await until(() => isGone(stuck.sandbox.id));
});

test("a store that cannot be read for a while does not end the loop", async () => {
  const { sandbox } = await running("one");
  let failures = 3;
  const due = store.due.bind(store);
  store.due = async (...args) => {
    if (failures-- > 0) throw new Error("disk I/O error");
    return due(...args);
  };
  server.reconciler.start();
  await until(async () => failures < 0);
  const holding = await store.holding(sandbox.id);
  if (holding === undefined) throw new Error("it is not there");
  await store.save(holding, { sandbox: { desired: "deleted" }, lease: { dueAt: now } });
  await until(() => isGone(sandbox.id));
});

test("a deletion whose first pass failed is finished by the loop, and not as fast as it can", async () => {
  const { sandbox } = await running("one");
  await server.sandboxes.stop("one");
  const read = store.holding.bind(store);
  let reads = 0;
  store.holding = async () => {
    reads++;
    throw new Error("disk I/O error");
  };
  const asked = server.sandboxes.delete("one", { mode: "graceful", waitMs: 0 });
  expect(await asked.catch(String)).toContain("disk I/O error");
  const before = now;
  server.reconciler.start();
  await until(async () => reads > 4);
  expect(now - before).toBeGreaterThan(2_000);
  store.holding = read;
  await until(() => isGone(sandbox.id));
});

test("force that is asked for later does not wait for the next graceful attempt", async () => {
  const { sandbox } = await running("one");
  provider.faults.stop = "fails";
  expect(await server.sandboxes.delete("one", { mode: "graceful", waitMs: 0 })).toBe("deleting");
  const modes: string[] = [];
  const stop = provider.stop.bind(provider);
  delete provider.faults.stop;
  const seam: Provider = provider;
  seam.stop = async (ref, mode) => {
    modes.push(mode);
    return stop(ref);
  };
  const before = now;
  await server.sandboxes.delete("one", { mode: "force", waitMs: 0 });
  await until(() => isGone(sandbox.id));
  expect({ modes, waited: now - before }).toEqual({ modes: ["force"], waited: 0 });
});

test("a clock that is put back by a year delays nothing", async () => {
  const { sandbox } = await running("one");
  provider.faults.stop = "fails";
  await server.sandboxes.stop("one");
  server.reconciler.start();
  const attempts = async () => (await store.holding(sandbox.id))?.lease?.attempts ?? 0;
  await until(async () => (await attempts()) > 2);
  now -= 365 * 24 * 3_600_000;
  delete provider.faults.stop;
  await until(async () => (await store.holding(sandbox.id))?.lease === undefined);
});

test("a start that loses against a stop is told so", async () => {
  await running("one");
  await server.sandboxes.stop("one");
  const { promise: launching, resolve: launched } = Promise.withResolvers<void>();
  const launch = provider.launch.bind(provider);
  let stopping: Promise<Holding> | undefined;
  provider.launch = async (...args) => {
    stopping = server.sandboxes.stop("one");
    await launching;
    return launch(...args);
  };
  const started = server.sandboxes.start("one").catch((error) => error);
  await until(async () => (await store.find("one"))?.sandbox.desired === "stopped" && stopping !== undefined);
  launched();
  expect(await started).toMatchObject({
    code: "wrong_state",
    message: expect.stringContaining("was stopped while"),
  });
  expect((await stopping)?.lease).toBeUndefined();
});

test("a creation that nobody waits for survives a crash right after its answer", async () => {
  const begun = await server.sandboxes.begin(await server.sandboxes.create({ name: "one" }));
  expect(begun.lease?.phase).toBe("reserved");
  await server.crash();
  server = startServer();
  await server.reconciler.adopt();
  expect((await server.sandboxes.get("one")).lease?.phase).toBe("live");
});
