import { HoldfastError } from "@holdfast/protocol";
import type { InUse } from "../packages/server/src/lifecycle/waker.ts";
import { ConnectionLost } from "./replica.ts";
import type { Universe } from "./universe.ts";
import type { SimLink } from "./world/door.ts";

/** Nobody waits longer for an answer. */
const PATIENCE_MS = 30_000;

/** Clients do not wait longer for a sandbox to become idle. */
const LONGEST_IDLE_MS = 400_000;

const lifetimes = [20, 60, 300];

/** What one client does next, by weight. */
const deeds: readonly (readonly [weight: number, deed: (client: Client) => Promise<void>])[] = [
  [6, work],
  [3, turn],
  [2, idle],
  [1, touch],
  [1, changePolicy],
  [1, stop],
  [1.5, pause],
  [0.5, resume],
  [1.5, copy],
  [1, fork],
  [1, remove],
  [0.5, forceRemove],
  [0.5, giveUp],
  [1, claim],
  [0.5, leaveATurn],
  [0.7, build],
  [2, comeAtTheLastMoment],
  [2, createAnother],
];

/** One user of the servers. It forgets nothing, checks what it was told, and survives its server. */
interface Client {
  readonly universe: Universe;
  readonly name: string;
  /** The sandbox's name. Clients share them. */
  readonly sandbox: () => string;
  readonly request: () => Record<string, unknown>;
}

/** Starts a client that does `count` things, and resolves when it has done them. */
export async function runClient(universe: Universe, options: { name: string; count: number }): Promise<void> {
  const { rng } = universe;
  const provider = rng.pick([...universe.backends.keys()]);
  const policy = policyOf(universe);
  const client: Client = {
    universe,
    name: options.name,
    sandbox: () => `box${rng.between(0, 2)}`,
    request: () => ({ provider, ...policy }),
  };
  for (let i = 0; i < options.count; i++) {
    await universe.sleep(rng.chance(0.5) ? rng.between(0, 2_000) : rng.between(1_000, 40_000));
    if (universe.isHealed) return;
    await attempt(client, deedOf(universe));
  }
}

function deedOf({ rng }: Universe): (client: Client) => Promise<void> {
  return rng.weighted(deeds) ?? work;
}

function policyOf(universe: Universe): Record<string, unknown> {
  const { rng } = universe;
  const persistent = rng.chance(0.7);
  const lifetimeSeconds = rng.pick(lifetimes);
  const turnTimeoutSeconds = rng.pick([30, 120]);
  const maxLifetimeSeconds = rng.chance(0.15) ? rng.pick([120, 900]) : null;
  const filesystem = persistent && rng.chance(0.8) ? "persistent" : "ephemeral";
  const onIdle = rng.chance(0.15) ? "keep" : filesystem === "persistent" && persistent ? "stop" : "remove";
  const snapshotOnReap = copies(universe) && rng.chance(0.3);
  return {
    ...{ persistent, lifetimeSeconds, turnTimeoutSeconds, maxLifetimeSeconds, filesystem, onIdle },
    ...(snapshotOnReap && { snapshotOnReap }),
  };
}

/** Typed errors and lost servers are part of a client's day; anything else is a defect. */
async function attempt(client: Client, deed: (client: Client) => Promise<void>): Promise<void> {
  const { judge, coverage } = client.universe;
  try {
    await deed(client);
    coverage.sometimes(`client: ${deed.name}`);
  } catch (error) {
    if (error instanceof ConnectionLost) return coverage.sometimes("client: lost its server");
    const code = error instanceof HoldfastError ? error.code : "defect";
    coverage.sometimes(`client: ${code}`);
    const isTyped = code !== "defect" && code !== "internal";
    judge.demand(
      isTyped,
      "typed errors",
      () => `${deed.name}: ${error instanceof Error ? error.stack : String(error)}`,
    );
  }
}

async function work(client: Client): Promise<void> {
  const { universe } = client;
  const { rng } = universe;
  const name = client.sandbox();
  await universe.ask(`ensure ${name}`, ({ sandboxes }) => sandboxes.ensure(name, client.request()));
  await command(client, name, {});
  if (rng.chance(0.3)) await command(client, name, {});
}

/** One without a name: it may be a spare. Whose server dies asks again, with the same key. */
async function createAnother(client: Client): Promise<void> {
  const { universe } = client;
  const idempotencyKey = universe.newId("key");
  const ask = () =>
    universe.ask(`create ${idempotencyKey}`, async ({ sandboxes }) => {
      const made = await sandboxes.create(client.request(), { idempotencyKey });
      return (await sandboxes.wake(made)).holding.sandboxId;
    });
  const id = await ask().catch((error: unknown) => {
    if (!(error instanceof ConnectionLost)) throw error;
    return universe.sleep(2_000).then(ask);
  });
  try {
    await command(client, id, {});
  } finally {
    const options = { mode: "force", waitMs: PATIENCE_MS } as const;
    await universe.ask(`delete ${id}`, ({ sandboxes }) => sandboxes.delete(id, options));
  }
}

async function command(
  client: Client,
  name: string,
  asked: { turnId?: string; claimToken?: string },
): Promise<void> {
  const { universe } = client;
  const { rng, witness } = universe;
  const commandId = universe.newId("cmd");
  const durationMs = rng.pick([10, 500, 5_000, 40_000, 400_000]);
  const sandboxId = await universe.ask(`${commandId} in ${name}`, async ({ sandboxes }) => {
    const first = await sandboxes.use(name, asked);
    try {
      return await runIn(first, { commandId, durationMs });
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === "quiesced")) throw error;
      universe.coverage.sometimes("client: work arrives at a keeper that rests");
      return runIn(await first.again(), { commandId, durationMs });
    }
  });
  witness.acked({ installationId: universe.installationId, sandboxId }, commandId);
}

async function runIn(
  { holding, link, claimFence = 0 }: InUse<SimLink>,
  command: { commandId: string; durationMs: number },
): Promise<string> {
  await link.run({ ...command, claimFence });
  return holding.sandboxId;
}

async function turn(client: Client): Promise<void> {
  const { universe } = client;
  const name = client.sandbox();
  await universe.ask(`ensure ${name}`, ({ sandboxes }) => sandboxes.ensure(name, client.request()));
  const { turn } = await universe.ask(`begin turn in ${name}`, ({ turns }) => turns.begin(name, {}));
  try {
    await command(client, name, { turnId: turn.turnId });
  } finally {
    await universe.ask(`end ${turn.turnId}`, ({ turns }) => turns.end(name, turn.turnId));
  }
}

/** Its client crashed: the turn is never ended by anybody. */
async function leaveATurn(client: Client): Promise<void> {
  const name = client.sandbox();
  await client.universe.ask(`begin and leave a turn in ${name}`, ({ turns }) => turns.begin(name, {}));
}

async function idle({ universe }: Client): Promise<void> {
  await universe.sleep(universe.rng.between(20_000, LONGEST_IDLE_MS));
}

async function touch(client: Client): Promise<void> {
  const name = client.sandbox();
  await client.universe.ask(`touch ${name}`, ({ sandboxes }) => sandboxes.touch(name, {}));
}

async function changePolicy(client: Client): Promise<void> {
  const name = client.sandbox();
  const lifetimeSeconds = client.universe.rng.pick(lifetimes);
  await client.universe.ask(`change ${name}`, ({ sandboxes }) => sandboxes.update(name, { lifetimeSeconds }));
}

async function stop(client: Client): Promise<void> {
  const name = client.sandbox();
  await client.universe.ask(`stop ${name}`, ({ sandboxes }) => sandboxes.stop(name, {}));
}

async function pause(client: Client): Promise<void> {
  const { universe } = client;
  const name = client.sandbox();
  await universe.ask(`start ${name}`, async ({ sandboxes }) => {
    await sandboxes.ensure(name, client.request());
    await sandboxes.use(name);
  });
  await client.universe.ask(`pause ${name}`, ({ sandboxes }) => sandboxes.pause(name, {}));
}

async function resume(client: Client): Promise<void> {
  const name = client.sandbox();
  await client.universe.ask(`resume ${name}`, ({ sandboxes }) => sandboxes.resume(name, {}));
}

/** A copy of the files, a sandbox that begins with it, and the copy is not needed any more. */
async function copy(client: Client): Promise<void> {
  const { universe } = client;
  if (!copies(universe)) return;
  const name = client.sandbox();
  const made = await universe.ask(`copy ${name}`, async ({ sandboxes, snapshots }) => {
    await sandboxes.ensure(name, client.request());
    const { holding } = await sandboxes.use(name);
    const { id } = await snapshots.begin(holding, {}, { origin: "request" });
    return snapshots.settled(id);
  });
  universe.coverage.sometimes(`a copy is ${made.phase}`);
  if (made.phase !== "ready") return;
  const from = { ...client.request(), provider: made.provider, fromSnapshot: made.id };
  const again = universe.ask(`begin with ${made.id}`, async ({ sandboxes }) => {
    await sandboxes.wake(await sandboxes.create(from));
  });
  // Sometimes somebody removes it under them.
  if (universe.rng.chance(0.5)) await again;
  else again.catch(() => undefined);
  await universe.ask(`remove ${made.id}`, ({ snapshots }) => snapshots.delete(made.id));
}

/** Whose server dies asks again, with the same key. */
async function fork(client: Client): Promise<void> {
  const { universe } = client;
  if (!copies(universe)) return;
  const name = client.sandbox();
  const idempotencyKey = universe.newId("key");
  const request = { count: universe.rng.between(1, 2) };
  const ask = () =>
    universe.ask(`fork ${name}`, ({ forks }) => forks.fork(name, request, { asked: {}, idempotencyKey }));
  try {
    await ask().catch((error: unknown) => {
      if (!(error instanceof ConnectionLost)) throw error;
      return universe.sleep(2_000).then(ask);
    });
  } catch (error) {
    // Its copy failed, and that is said.
    if (!String(error).includes("could not be made")) throw error;
  }
}

function copies({ backends }: Universe): boolean {
  return [...backends.values()].every((backend) => backend.copies);
}

function remove(client: Client): Promise<void> {
  return removeBy(client, "graceful");
}

function forceRemove(client: Client): Promise<void> {
  return removeBy(client, "force");
}

async function removeBy({ universe, sandbox }: Client, mode: "graceful" | "force"): Promise<void> {
  const { book, witness } = universe;
  const name = sandbox();
  const before = [...book.ledgers.values()].find((ledger) => ledger.sandbox?.name === name);
  const options = { mode, waitMs: PATIENCE_MS };
  const state = await universe.ask(`delete ${name} (${mode})`, ({ sandboxes }) =>
    sandboxes.delete(name, options),
  );
  if (state === "gone" && before !== undefined) witness.toldGone(before.sandboxId);
}

/** The operator gives up on an instance. */
async function giveUp({ universe, sandbox }: Client): Promise<void> {
  const name = sandbox();
  await universe.ask(`abandon ${name}`, ({ sandboxes }) => sandboxes.abandon(name, { reason: "simulated" }));
}

async function claim(client: Client): Promise<void> {
  const { universe } = client;
  const { rng } = universe;
  const name = client.sandbox();
  const request = { holder: client.name, ttlSeconds: rng.pick([5, 60]), takeover: rng.chance(0.4) };
  const { token } = await universe.ask(`claim ${name}`, ({ claims }) => claims.claim(name, request));
  await command(client, name, { claimToken: token });
}

/** Work in the background: nobody waits for it, and it holds off the reaper. */
async function build({ universe, sandbox }: Client): Promise<void> {
  const { rng } = universe;
  const name = sandbox();
  const holding = await universe.ask(`look at ${name}`, ({ sandboxes }) => sandboxes.get(name));
  const { lease } = holding;
  const instances = [...universe.backends.values()].flatMap(({ instances }) => [...instances.values()]);
  const instance = instances.find(({ ref }) => ref.instanceId === lease?.instanceId);
  if (instance?.keeper.isAdmitted) instance.keeper.workFor(rng.between(10_000, 600_000));
}

/** Somebody who comes just when the reaper does. */
async function comeAtTheLastMoment({ universe, sandbox }: Client): Promise<void> {
  const name = sandbox();
  const ledger = [...universe.book.ledgers.values()].find((one) => one.sandbox?.name === name);
  const leftMs = (ledger?.lease?.idleCheckAt ?? 0) - universe.storeNow();
  if (leftMs <= 0 || leftMs > LONGEST_IDLE_MS) return;
  await universe.sleep(leftMs + universe.rng.between(-20, 60));
  await universe.ask(`begin a turn in ${name} at the last moment`, ({ turns }) => turns.begin(name, {}));
}
