import { afterEach, beforeEach, expect, test } from "bun:test";
import type { InstanceRef, LaunchPlan } from "@holdfast/core";
import { FakeProvider } from "./fake-provider.ts";
import { providerConformance } from "./provider-conformance.ts";

const secret = "not-a-secret-but-long-enough-for-one";
const plan: LaunchPlan = { spec: {}, hostname: "box", secret, lifetimeSeconds: 600, fence: 7 };

providerConformance("fake", {
  timeoutMs: 5_000,
  setUp: async () => {
    const provider = new FakeProvider();
    return {
      // The object is the backend: what a restarted server finds is what the old one left.
      open: () => provider,
      plan,
      launchLegacy: async (ref) => provider.plantLegacy(ref),
      crash: async (ref) => provider.kill(ref),
      leftovers: async () => provider.leftovers(),
      close: async () => provider.close(),
    };
  },
});

const ref: InstanceRef = { installationId: "inst", sandboxId: "sbx", instanceId: "i1", generation: 1 };
let provider: FakeProvider;
beforeEach(() => {
  provider = new FakeProvider({ now: () => 1000 });
});
afterEach(() => provider.close());

test("an unreachable backend does nothing and says so, to every call", async () => {
  await provider.launch(ref, plan);
  provider.faults.backend = "unreachable";
  const calls = [
    () => provider.launch({ ...ref, generation: 2 }, plan),
    () => provider.observe(ref),
    () => provider.stop(ref),
    () => provider.removeDisk(ref),
    () => provider.discover(),
    () => provider.capacity(),
  ];
  for (const call of calls) await expect(call()).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(await provider.probe()).toMatchObject([{ ok: false, required: true }]);
  expect(provider.refs()).toEqual([ref]);
});

test("a cache that has not heard of an instance is no proof, a restart of the machine is", async () => {
  await provider.launch(ref, plan);
  provider.faults.observe = "notFound";
  expect(await provider.observe(ref)).toMatchObject({ state: "absent", proof: "not_found" });
  delete provider.faults.observe;
  expect(await provider.observe(ref)).toMatchObject({ state: "running" });
  provider.reboot();
  expect(await provider.observe(ref)).toMatchObject({ state: "absent", proof: "host_reset" });
  expect(await provider.stop(ref)).toMatchObject({ state: "absent", proof: "host_reset" });
});

test("a list that came only in part and a disk that cannot be measured are errors", async () => {
  provider.faults.discover = "fails";
  provider.faults.capacity = "unknown";
  provider.faults.launch = "diskFull";
  await expect(provider.discover()).rejects.toMatchObject({ code: "unavailable" });
  await expect(provider.capacity()).rejects.toMatchObject({ code: "capacity_unknown" });
  await expect(provider.launch(ref, plan)).rejects.toMatchObject({
    code: "host_storage_unusable",
    details: { errno: "ENOSPC" },
  });
});

/** What the keeper answers to a server with this fence. */
async function ask(
  path: string,
  { body, fence = 7 }: { body?: object; fence?: number } = {},
): Promise<unknown> {
  const seen = await provider.observe(ref);
  if (seen.state !== "running") throw new Error(seen.detail);
  const reply = await fetch(`http://keeper/v1/${path}`, {
    unix: seen.keeper.path,
    headers: { Authorization: `Bearer ${secret}`, "Holdfast-Fence": String(fence) },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  return reply.status === 204 ? 204 : reply.json();
}

test("its keeper is as idle as it is told to be, and refuses work once it is quiesced", async () => {
  await provider.launch(ref, plan);
  const { instanceId, generation } = ref;
  await ask("admit", { body: { instanceId, generation, fence: 7, lifetimeSeconds: 60 } });
  const keeper = provider.keeperOf(ref);
  expect(keeper.admitted).toMatchObject({ fence: 7, lifetimeSeconds: 60 });

  keeper.heldAwakeBy = ["a build"];
  keeper.idleForMs = 90_000;
  expect(await ask("quiesce", { body: { lifetimeMs: 60_000 } })).toEqual({
    state: "busy",
    because: ["a build"],
    idleForMs: 0,
  });
  keeper.heldAwakeBy = [];
  expect(await ask("activity")).toEqual({ heldAwakeBy: [], idleForMs: 90_000 });
  expect(await ask("quiesce", { body: { lifetimeMs: 60_000 } })).toEqual({ state: "quiesced" });
  expect(await ask("exec", { body: { command: "echo" } })).toMatchObject({ error: { code: "quiesced" } });
  expect(await ask("resume", { body: {} })).toBe(204);
  expect(await ask("exec", { body: { command: "echo" } })).toMatchObject({ stdout: "echo" });

  expect(await ask("touch", { body: {} })).toEqual({ heldAwakeBy: [], idleForMs: 0 });
  expect(await ask("quiesce", { body: { lifetimeMs: 60_000 } })).toMatchObject({
    state: "busy",
    idleForMs: 0,
  });
  expect(await ask("claim-fence", { body: { fence: 3, required: true } })).toBe(204);
  expect(keeper.claim).toEqual({ fence: 3, required: true });
  expect(await ask("keeper", { fence: 6 })).toMatchObject({ error: { code: "fence_stale" } });
});

test("a watch ends with the keeper", async () => {
  await provider.launch(ref, plan);
  const seen = await provider.observe(ref);
  if (seen.state !== "running") throw new Error(seen.detail);
  const headers = { Authorization: `Bearer ${secret}` };
  const reply = await fetch("http://keeper/v1/watch", { unix: seen.keeper.path, headers });
  const reader = reply.body?.getReader();
  await reader?.read();
  expect(provider.keeperOf(ref).watches).toBe(1);
  const end = reader?.read().then(
    ({ done }) => done,
    () => true,
  );
  provider.kill(ref);
  expect(await end).toBe(true);
});
