import { type Fault, faultNames } from "./faults.ts";
import { numbered } from "./invariants/scene.ts";
import type { Replica } from "./replica.ts";
import { START_MS } from "./start-time.ts";
import type { Universe } from "./universe.ts";
import { settled } from "./world/store-port.ts";

const MINUTE_MS = 60_000;

/** Things that happen to the world as a whole, by the name of their fault. */
const events: Partial<Record<Fault, (universe: Universe) => void>> = {
  kill_server: (universe) => withServer(universe, (replica) => restartLater(universe, replica)),
  pause_server: (universe) =>
    withServer(universe, ({ actor }) =>
      universe.scheduler.pause(actor, universe.rng.between(1_000, 120_000)),
    ),
  partition_store: (universe) => cut(universe, "store"),
  partition_provider: (universe) => cut(universe, "provider"),
  partition_keepers: (universe) => cut(universe, "keepers"),
  clock_jump: ({ rng, replicas }) => rng.pick(replicas).jump(rng.pick([-60, -10, -1, 1, 10, 60]) * MINUTE_MS),
  host_unreachable: ({ rng, backends, scheduler }) => {
    rng.pick([...backends.values()]).unreachableUntil = scheduler.now + rng.between(5_000, 20 * MINUTE_MS);
  },
  host_reboot: ({ rng, backends }) => rng.pick([...backends.values()]).reboot(),
  disk_unusable: ({ rng, backends, scheduler }) => {
    rng.pick([...backends.values()]).unusableUntil = scheduler.now + rng.between(5_000, 10 * MINUTE_MS);
  },
  capacity_change: ({ rng, backends }) => {
    const backend = rng.pick([...backends.values()]);
    backend.slots = rng.pick([null, 1, 2, 4]);
    backend.freeDiskBytes = rng.chance(0.3) ? 1 : 500 * 1024 ** 3;
  },
  keeper_paused: ({ rng, backends }) => {
    const keepers = [...backends.values()].flatMap(({ instances }) => [...instances.values()]);
    if (keepers.length > 0) rng.pick(keepers).keeper.pause(rng.between(1_000, 15 * MINUTE_MS));
  },
  paused_outside: ({ rng, backends, installationId, history }) => {
    const all = [...backends.values()].flatMap(({ instances }) => [...instances.values()]);
    const ours = all.filter(({ ref, keeper }) => ref.installationId === installationId && keeper.isAdmitted);
    if (ours.length === 0) return;
    const { keeper, ref } = rng.pick(ours);
    history.pausedOutside.add(ref.instanceId);
    keeper.freeze();
  },
  out_of_memory: ({ rng, backends }) => {
    const backend = rng.pick([...backends.values()]);
    const instances = [...backend.instances.values()].filter(({ ref }) => ref.installationId !== "another");
    if (instances.length > 0) backend.end(rng.pick(instances), "out of memory");
  },
  foreign_instance: (universe) => plantForeign(universe),
  restore_backup: (universe) => restore(universe),
};

/** One of those that are on for this seed, by their weights. */
export function strike(universe: Universe): void {
  const { faults, rng } = universe;
  const on = faultNames.filter((name) => events[name] !== undefined && (faults.plan[name] ?? 0) > 0);
  if (on.length === 0) return;
  const name = rng.weighted(on.map((one) => [faults.plan[one] ?? 0, one]));
  if (name === undefined) return;
  const phases = new Set(universe.book.standing().map(({ phase }) => phase));
  faults.note(name);
  for (const phase of phases) universe.coverage.sometimes(`fault in phase ${phase} x ${name}`);
  universe.say(`!! ${name}`);
  events[name]?.(universe);
}

/** Everything that was broken is whole again, and every server runs. */
export function heal(universe: Universe): void {
  const { faults, backends, replicas } = universe;
  faults.heal();
  universe.isHealed = true;
  for (const backend of backends.values()) {
    backend.unreachableUntil = 0;
    backend.unusableUntil = 0;
    backend.slots = null;
    backend.freeDiskBytes = 500 * 1024 ** 3;
  }
  for (const replica of replicas) {
    Object.assign(replica.cut, { store: false, provider: false, keepers: false });
    replica.actor.heldUntil = 0;
    replica.start();
  }
}

function withServer({ rng, replicas }: Universe, act: (replica: Replica) => void): void {
  const up = replicas.filter(({ isUp }) => isUp);
  if (up.length > 0) act(rng.pick(up));
}

function restartLater(universe: Universe, replica: Replica): void {
  const { scheduler, rng } = universe;
  replica.kill();
  const awayMs = rng.pick([1_000, 5_000, 30_000, 90_000, 10 * MINUTE_MS]);
  scheduler.park({
    op: `${replica.actor.name} is started`,
    due: scheduler.now + awayMs,
    run: () => replica.start(),
  });
}

function cut(universe: Universe, line: "store" | "provider" | "keepers"): void {
  const { scheduler, rng } = universe;
  withServer(universe, (replica) => {
    replica.cut[line] = true;
    if (line === "keepers") replica.cutKeepers();
    const run = () => {
      replica.cut[line] = false;
    };
    const due = scheduler.now + rng.between(1_000, 5 * MINUTE_MS);
    scheduler.park({ op: `${replica.actor.name} reaches ${line} again`, due, run });
  });
}

/** Something of another installation, and something that only looks like ours. */
function plantForeign({ rng, backends }: Universe): void {
  const backend = rng.pick([...backends.values()]);
  const sandboxId = `foreign${backend.instances.size}`;
  const ref = { installationId: "another", sandboxId, instanceId: `foreign-${sandboxId}`, generation: 1 };
  const plan = { spec: {}, hostname: "foreign", secret: "foreign", lifetimeSeconds: 10, fence: 1 };
  if (!backend.instances.has(`hf-${sandboxId}-g1`))
    backend.plant(ref, plan, { legacy: rng.chance(0.5), isGhost: true });
}

/** All servers end, the store goes back to how it was, and they start on that. */
function restore(universe: Universe): void {
  const { replicas, scheduler } = universe;
  if (universe.backup === undefined) return;
  for (const replica of replicas) if (replica.isUp) restartLater(universe, replica);
  scheduler.park({ op: "the backup is restored", due: scheduler.now, run: () => goBack(universe) });
}

function goBack({ replicas, database, book, backends, history, backup }: Universe): void {
  // One may have been started since: who restores under a running server deserves what he gets, and is not simulated.
  if (backup === undefined || replicas.some(({ isUp }) => isUp)) return;
  const before = [...book.ledgers.values()].filter(({ sandbox }) => sandbox !== undefined);
  database.restore(backup);
  settled(book.reload(database.store, [...backends.keys()]));
  for (const { sandboxId, sandbox } of before) {
    const now = book.ledgers.get(sandboxId)?.sandbox;
    if (now === undefined || now.generation !== sandbox?.generation) history.forgotten.add(sandboxId);
  }
  history.wentBack = true;
  forgetGenerations({ history, book, backends });
  forgetLaunches({ history, book });
  history.names.clear();
  history.attempts.clear();
}

/**
 * A generation that the restored rows know nothing of may come again, until a server has found an instance with it: one
 * that was never made, or that ends before anybody lists it, has left no trace.
 */
function forgetGenerations({
  history,
  book,
  backends,
}: Pick<Universe, "history" | "book" | "backends">): void {
  history.unlisted.clear();
  for (const { instances } of backends.values())
    for (const { ref, fence } of instances.values()) history.unlisted.set(numbered(ref), { ...ref, fence });
  for (const [id, { fence }] of history.generations) {
    const row = book.ledgers.get(id)?.sandbox;
    if (row === undefined) continue;
    history.generations.set(id, { generation: row.generation, fence: Math.min(fence, row.fence) });
  }
}

/** Rows from before a launch was sent wait for none, or for an earlier one: what arrives after that is a ghost. */
function forgetLaunches({ history, book }: Pick<Universe, "history" | "book">): void {
  for (const [instanceId, arrives] of history.underWay) {
    const settleUntil = book.leases.get(instanceId)?.settleUntil ?? 0;
    if (settleUntil < START_MS + arrives) history.underWay.delete(instanceId);
  }
}
