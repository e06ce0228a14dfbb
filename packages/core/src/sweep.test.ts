import { expect, test } from "bun:test";
import { aFoundDisk, aFoundInstance, aLease, aSandbox, NOW } from "./example-rows.ts";
import type { Lease } from "./lease.ts";
import type { Found, FoundInstance } from "./provider.ts";
import { planSweep, type SweepAction, type SweepInput, type SweepPlan } from "./sweep.ts";

const MINUTE = 60_000;
const LIFETIME = 1_800_000;
const sandboxes = (over: Parameters<typeof aSandbox>[0] = {}) => new Map([["s1", aSandbox(over)]]);
const unseen = { spared: [], foreign: 0, firstSeen: {}, heldBack: [] };

function plan(found: readonly Found[], over: Partial<SweepInput> = {}): SweepPlan {
  return planSweep({
    installationId: "ours",
    now: NOW,
    listedAt: NOW,
    found,
    leases: [],
    sandboxes: new Map(),
    tombstones: new Set(),
    firstSeen: {},
    heldBack: [],
    ...over,
  });
}

function aged(ageMs: number | null, over: Parameters<typeof aFoundInstance>[1] = {}): FoundInstance {
  return aFoundInstance("x", { createdAt: ageMs === null ? null : NOW - ageMs, ...over });
}

function record(found: FoundInstance, because: string, at = NOW): SweepAction {
  return { do: "record", found, because, at };
}

test("what has a row is left to its row, in every phase but gone", () => {
  const phases = ["creating", "starting", "live", "stop_due", "stopping", "quarantined", "debt"] as const;
  for (const phase of phases) {
    expect(plan([aFoundInstance("i1")], { leases: [aLease({ phase })], sandboxes: sandboxes() })).toEqual({
      ...unseen,
      actions: [],
    });
  }
});

test("one that was believed to be gone is reopened, unless it ended while the list was on its way", () => {
  const goneAt = (at: number): Lease =>
    aLease({ phase: "gone", evidence: { kind: "exited", at, detail: "pid 7" } });
  const listed = (at: number) => plan([aFoundInstance("i1")], { leases: [goneAt(at)] }).actions;
  expect(listed(NOW - 1)).toEqual([{ do: "reopen", lease: goneAt(NOW - 1) }]);
  expect(listed(NOW)).toEqual([]);
});

const UNKNOWN = "its sandbox is not known here";
const NO_SUCH = "the sandbox has no such instance";

test("scenario 37: a fresh instance without a row is left alone for the creation grace", () => {
  const [young, old] = [aged(2 * MINUTE - 1), aged(2 * MINUTE)];
  expect(plan([young], { sandboxes: sandboxes() })).toMatchObject({
    actions: [],
    spared: [{ found: young, because: NO_SUCH, until: NOW + 1 }],
  });
  expect(plan([old], { sandboxes: sandboxes() }).actions).toEqual([record(old, NO_SUCH)]);
});

test("scenario 38: an orphan of 1.9 lifetimes is kept, of 2.1 removed, through a ledger row", () => {
  const [kept, ended] = [aged(1.9 * LIFETIME), aged(2.1 * LIFETIME)];
  expect(plan([kept])).toMatchObject({
    actions: [],
    spared: [{ found: kept, because: UNKNOWN, until: NOW + 0.1 * LIFETIME }],
  });
  expect(plan([ended]).actions).toEqual([record(ended, UNKNOWN)]);
});

const ages: [string, FoundInstance, "kept" | "ended"][] = [
  ["a short lifetime still gives ten minutes", aged(9 * MINUTE, { lifetimeSeconds: 1 }), "kept"],
  ["and no more", aged(10 * MINUTE, { lifetimeSeconds: 1 }), "ended"],
  ["without a lifetime it is the default", aged(59 * MINUTE, { lifetimeSeconds: null }), "kept"],
  ["and no more than twice", aged(60 * MINUTE, { lifetimeSeconds: null }), "ended"],
];

test.each(ages)("an orphan's age: %s", (_, found, expected) => {
  expect(plan([found]).actions.length === 0 ? "kept" : "ended").toBe(expected);
});

test("one that does not say how old it is counts from when it was first seen", () => {
  const first = plan([aged(null)]);
  expect(first).toMatchObject({ actions: [], firstSeen: { x: NOW } });
  const later = { ...first, now: NOW + 2 * LIFETIME };
  expect(plan([aged(null)], { firstSeen: later.firstSeen, now: later.now - 1 }).actions).toEqual([]);
  expect(plan([aged(null)], { firstSeen: later.firstSeen, now: later.now })).toMatchObject({
    actions: [{ do: "record" }],
    firstSeen: { x: NOW },
  });
});

test("scenario 39: what carries another installation's id, or none, is counted and never touched", () => {
  const foreign = ["theirs", ""].map((installationId) => aged(99 * LIFETIME, { ref: { installationId } }));
  const disk = { ...aFoundDisk("s9"), ref: { installationId: "theirs", sandboxId: "s9" } };
  expect(plan([...foreign, disk], { tombstones: new Set(["s1", "s9"]) })).toEqual({
    ...unseen,
    actions: [],
    foreign: 3,
  });
});

test("scenario 40: one that is known by an older marker only is stopped like any other, never used", () => {
  const legacy = aged(null, { legacy: true, lifetimeSeconds: null, fence: null });
  const since = { firstSeen: { x: NOW - 2 * MINUTE }, sandboxes: sandboxes() };
  expect(plan([legacy], since).actions).toEqual([record(legacy, NO_SUCH)]);
});

test("scenario 41: of two for one sandbox the one without a row is stopped, the other goes on", () => {
  const [known, unknown] = [aFoundInstance("i1"), aged(2 * MINUTE)];
  const input = { leases: [aLease({ phase: "live" })], sandboxes: sandboxes() };
  expect(plan([known, unknown], input).actions).toEqual([record(unknown, NO_SUCH)]);
});

test("scenario 42: what is newer than the rows is recorded, and has its time", () => {
  const newer = aged(MINUTE, { ref: { generation: 5 }, fence: 7 });
  expect(plan([newer], { sandboxes: sandboxes({ generation: 3, fence: 4 }) })).toMatchObject({
    actions: [record(newer, "it is newer than the rows", NOW - MINUTE + 2 * LIFETIME)],
    spared: [],
  });
});

test("what belongs to a deleted sandbox is stopped at once", () => {
  const found = aged(0);
  expect(plan([found], { tombstones: new Set(["s1"]) }).actions).toEqual([
    record(found, "its sandbox was deleted"),
  ]);
});

test("a disk has an owner, or is found one, or goes with its sandbox", () => {
  const found = ["s1", "s2", "s3", "s4"].map(aFoundDisk);
  const known = new Map([
    ["s1", aSandbox()],
    ["s2", aSandbox({ id: "s2", hasDisk: false })],
  ]);
  const { actions } = plan(found, { sandboxes: known, tombstones: new Set(["s3"]) });
  expect(actions).toEqual([
    { do: "own-disk", found: aFoundDisk("s2") },
    { do: "remove-disk", found: aFoundDisk("s3") },
    { do: "recover-disk", found: aFoundDisk("s4"), generation: 0, fence: 0 },
  ]);
});

test("a sandbox that the rows forgot goes on counting from its leases, also if only its numbers were lost", () => {
  const leases = [2, 3].map((generation) => aLease({ instanceId: `i${generation}`, generation, fence: 7 }));
  const found = [aFoundDisk("s1")];
  expect(plan(found, { leases }).actions).toEqual([
    { do: "recover-disk", found: aFoundDisk("s1"), generation: 3, fence: 7 },
  ]);
  const sandboxes = new Map([["s1", aSandbox({ generation: 0, fence: 0 })]]);
  expect(plan(found, { leases, sandboxes }).actions).toEqual([
    { do: "raise", sandboxId: "s1", generation: 3, fence: 7 },
  ]);
});

test("a forgotten sandbox is made anew only when each of its instances stands in the way of another", () => {
  const [disk, running] = [aFoundDisk("s1"), aged(MINUTE, { ref: { generation: 5 }, fence: 7 })];
  const because = "an instance on it has no row yet";
  const waiting = { spared: [{ found: disk, because, until: null }] };
  const row = record(running, UNKNOWN, NOW - MINUTE + 2 * LIFETIME);
  for (const found of [
    [running, disk],
    [disk, running],
  ])
    expect(plan(found)).toMatchObject({ ...waiting, actions: [row] });
  const lease = aLease({ instanceId: "x", generation: 5, fence: 7 });
  const orphan: Lease = { ...lease, origin: "orphan", phase: "stop_due" };
  expect(plan([running, disk], { leases: [orphan] })).toMatchObject({
    spared: [],
    actions: [{ do: "recover-disk", found: disk, generation: 5, fence: 7 }],
  });
  const gone: Lease = { ...lease, phase: "gone", evidence: { kind: "exited", at: NOW - 1, detail: "" } };
  expect(plan([running, disk], { leases: [gone] })).toMatchObject({
    ...waiting,
    actions: [{ do: "reopen", lease: gone }],
  });
});

const crowd = (count: number): FoundInstance[] =>
  Array.from({ length: count }, (_, i) =>
    aFoundInstance(`o${i}`, { createdAt: 0, lifetimeSeconds: 1, ref: { sandboxId: `lost${i}` } }),
  );
const ids = ({ actions }: SweepPlan) =>
  actions.flatMap((action) => (action.do === "record" ? [action.found.ref.instanceId] : []));

test("scenario 43: the brake holds back what is too much, and a second pass that finds the same releases it", () => {
  const found = crowd(6);
  const held = plan(found, { now: NOW, listedAt: NOW });
  expect({ ended: ids(held), held: held.heldBack.length }).toEqual({ ended: [], held: 6 });
  const again = plan(found, { heldBack: held.heldBack });
  expect({ ended: ids(again).length, held: again.heldBack }).toEqual({ ended: 6, held: [] });
});

test("scenario 43: each one needs a second pass, so that ever new ones do not hold back the others for ever", () => {
  const held = plan(crowd(6)).heldBack;
  const again = plan(crowd(7), { heldBack: held });
  expect({ ended: ids(again), held: again.heldBack }).toEqual({ ended: [...held], held: ["o6"] });
});

test("scenario 43: a handful, or a fifth of many, is no mass kill", () => {
  const known = Array.from({ length: 30 }, (_, i) => aFoundInstance(`k${i}`));
  const leases = known.map(({ ref }) => aLease({ instanceId: ref.instanceId }));
  const ended = (count: number) => ids(plan([...crowd(count), ...known], { leases })).length;
  expect([ids(plan(crowd(5))).length, ended(7), ended(8)]).toEqual([5, 7, 0]);
});

test("the brake does not hold back rows that only stand in the way: a second instance must not begin beside", () => {
  const newer = Array.from({ length: 9 }, (_, i) =>
    aged(0, { ref: { instanceId: `n${i}`, generation: 2 + i } }),
  );
  const { actions, heldBack } = plan(newer, { sandboxes: sandboxes() });
  expect({ recorded: actions.filter(({ do: what }) => what === "record").length, heldBack }).toEqual({
    recorded: 9,
    heldBack: [],
  });
});
