import { expect, test } from "bun:test";
import { aHolding, aLease, aLiveLease, anOrphanage, NOW } from "./example-rows.ts";
import type { Evidence, Lease } from "./lease.ts";
import { policyOf } from "./policy.ts";
import type { Change } from "./store.ts";
import {
  abandoned,
  cameAlive,
  concluded,
  evidenceOf,
  idleCheckAt,
  launched,
  launchFailed,
  launchSent,
  notIdleUntil,
  shifted,
  stopMissed,
  stopModeOf,
  stopNotSent,
  stopOrdered,
  stopSent,
  turnsEnded,
  unproven,
} from "./transitions.ts";

/** The lease as the change leaves it. */
function after(lease: Lease, change: Change): Lease {
  return { ...lease, ...change.leases?.[lease.instanceId] };
}

const missed = { error: "it is still there", now: NOW, random: 0.5 };
const exited = { state: "absent", proof: "exited", detail: "pid 7 is gone" } as const;
const notFound = { state: "absent", proof: "not_found", detail: "no such name" } as const;

test("a launch is counted, and may arrive late, before the provider hears of it", () => {
  const sent = { now: NOW, callMs: 40, settleMs: 5 };
  const first = after(aLease({ phase: "reserved" }), launchSent(aLease({ phase: "reserved" }), sent));
  expect(first).toEqual(aLease({ phase: "creating", attempts: 1, createSentAt: NOW, settleUntil: NOW + 45 }));
  const again = after(first, launchSent(first, { ...sent, now: NOW + 9 }));
  expect(again).toEqual({ ...first, attempts: 2, settleUntil: NOW + 54 });
  expect(launchSent(first, sent).entries).toBeUndefined();
  // The answer to the only call settles it; after a lost one the earlier may still arrive.
  expect([launched(first, sent), launched(again, sent)].map(({ leases }) => leases?.i1?.settleUntil)).toEqual(
    [null, NOW + 14],
  );
  expect(launchSent(first, { ...sent, settleMs: 0 }).leases?.i1?.settleUntil).toBeNull();
});

test("one that comes to life has its end in its row", () => {
  const policy = policyOf({ lifetimeSeconds: 60, maxLifetimeSeconds: 600 });
  const starting = aLease({ phase: "starting", attempts: 3, nextAttemptAt: NOW, lastError: "not yet" });
  const seen = {
    state: "running",
    keeper: { kind: "unix", path: "/x" },
    limits: { state: "none" },
    detail: "d",
  } as const;
  const holding = { ...aHolding({ policy, launchFailures: 2, failure: "x" }), lease: starting };
  expect(cameAlive(holding, seen, NOW)).toEqual({
    sandbox: { launchFailures: 0, failure: null, lastUsedAt: NOW },
    leases: {
      i1: {
        phase: "live",
        limits: { state: "none" },
        admittedAt: NOW,
        idleCheckAt: NOW + 60_000,
        hardStopAt: NOW + 600_000,
        attempts: 0,
        nextAttemptAt: null,
        missingSince: null,
        lastError: null,
      },
    },
    entries: [{ type: "live", detail: { generation: 1, instance: "d" } }],
  });
  const live = aLiveLease({ admittedAt: NOW - 500_000, idleCheckAt: NOW + 7 });
  // To find it again is no use of it, and gives it no more time.
  expect(cameAlive({ ...holding, lease: live }, seen, NOW)).toMatchObject({
    sandbox: { launchFailures: 0, failure: null },
    leases: { i1: { admittedAt: NOW - 500_000, idleCheckAt: NOW + 7, hardStopAt: NOW + 100_000 } },
    entries: [{ type: "adopted" }],
  });
});

const turn = { turnId: "t1", startedAt: NOW - 9_999_000, expiresAt: NOW + 1 };

test("scenario 13: an open turn longer than a lifetime holds it awake, and idle counts from its end", () => {
  const holding = aHolding({ turns: [turn], lastUsedAt: 0 }, aLiveLease({ idleCheckAt: NOW }));
  expect(notIdleUntil(holding, NOW)).toBe(NOW + 1_800_000);
  const ended = turnsEnded(holding, { turnIds: ["t1"], cause: "turn_end", now: NOW });
  expect(ended).toMatchObject({
    sandbox: { turns: [], lastUsedAt: NOW },
    leases: { i1: { idleCheckAt: NOW + 1_800_000 } },
  });
  const since = aHolding({ lastUsedAt: NOW }, aLiveLease());
  expect([notIdleUntil(since, NOW + 1_799_999), notIdleUntil(since, NOW + 1_800_000)]).toEqual([
    NOW + 1_800_000,
    undefined,
  ]);
});

test("scenario 14: a shorter lifetime is in force at once, by the last use; a longer one, too", () => {
  const idleAfter = (lifetimeSeconds: number) => {
    const policy = policyOf({ lifetimeSeconds });
    return [
      idleCheckAt(policy, NOW - 60_000),
      notIdleUntil(aHolding({ policy, lastUsedAt: NOW - 60_000 }), NOW),
    ];
  };
  expect([idleAfter(30), idleAfter(120)]).toEqual([
    [NOW - 30_000, undefined],
    [NOW + 60_000, NOW + 60_000],
  ]);
});

test("what is kept is looked at once a day, and is never idle", () => {
  const kept = aHolding({ policy: policyOf({ onIdle: "keep" }), lastUsedAt: 0 });
  expect(notIdleUntil(kept, NOW)).toBe(NOW + 86_400_000);
});

test("scenario 15: the end of a turn and the wish to remove its sandbox are one change", () => {
  const policy = policyOf({ persistent: false });
  const other = { ...turn, turnId: "t2" };
  const end = (turns: (typeof turn)[], ...turnIds: string[]) =>
    turnsEnded(aHolding({ policy, turns }), { turnIds, cause: "turn_end", now: NOW });
  expect(end([turn], "t1")).toEqual({
    sandbox: { turns: [], lastUsedAt: NOW, desired: "deleted", deleteReason: "turn_end" },
    entries: [
      {
        type: "turn_ended",
        cause: "turn_end",
        detail: { turnId: "t1", startedAt: new Date(turn.startedAt).toISOString() },
      },
    ],
  });
  // Only the last one, and two that expire at once are the last together.
  expect(end([turn, other], "t1").sandbox).toEqual({ turns: [other], lastUsedAt: NOW });
  expect(end([turn, other], "t1", "t2").sandbox).toMatchObject({ turns: [], desired: "deleted" });
});

test("a persistent sandbox outlives its turns, and a deletion keeps its reason", () => {
  const end = (over: Parameters<typeof aHolding>[0]) =>
    turnsEnded(aHolding({ turns: [turn], ...over }), { turnIds: ["t1"], cause: "turn_end", now: NOW });
  expect(end({}).sandbox).toEqual({ turns: [], lastUsedAt: NOW });
  const deleted = { policy: policyOf({ persistent: false }), desired: "deleted" } as const;
  expect(end({ ...deleted, deleteReason: "delete_requested" }).sandbox).toEqual({
    turns: [],
    lastUsedAt: NOW,
  });
});

const ends: [string, Parameters<typeof policyOf>[0], "stopped" | "removed"][] = [
  ["idle", {}, "stopped"],
  ["idle", { onIdle: "remove" }, "removed"],
  ["idle", { persistent: false }, "removed"],
  ["max_lifetime", {}, "stopped"],
  ["max_lifetime", { onIdle: "remove" }, "removed"],
  ["max_lifetime", { onIdle: "keep" }, "stopped"],
  ["max_lifetime", { onIdle: "keep", filesystem: "ephemeral" }, "removed"],
  ["startup_deadline", { onIdle: "remove" }, "stopped"],
  ["keeper_lost", { persistent: false }, "stopped"],
  ["stop_requested", { onIdle: "remove" }, "stopped"],
];

test.each(ends)("by %s, %j is %s", (because, asked, expected) => {
  const change = stopOrdered(aHolding({ policy: policyOf(asked) }), aLiveLease(), because, NOW);
  expect(change).toEqual({
    ...(expected === "removed" && { sandbox: { desired: "deleted", deleteReason: because } }),
    leases: {
      i1: {
        phase: "stop_due",
        stopReason: because,
        stopMode: "graceful",
        attempts: 0,
        nextAttemptAt: NOW,
        idleCheckAt: null,
      },
    },
    entries: [{ type: "stopping", cause: because }],
  });
});

test("an attempt is counted before it is made, and the wait begins when it is over", () => {
  let lease = aLease({ phase: "stop_due", nextAttemptAt: NOW });
  const ladder: unknown[] = [];
  for (let i = 0; i < 8; i++) {
    lease = after(lease, stopSent(lease, NOW));
    expect(lease).toMatchObject({ phase: "stopping", attempts: i + 1, attemptDeadlineAt: NOW + 30_000 });
    const mode = stopModeOf(lease, undefined);
    const change = stopMissed(lease, { ...missed, now: NOW + 30_000 });
    lease = after(lease, change);
    const wait = ((lease.nextAttemptAt ?? 0) - NOW - 30_000) / 1000;
    ladder.push([mode, lease.phase, wait, ...(change.entries ?? []).map(({ type }) => type)]);
  }
  expect(ladder).toEqual([
    ["graceful", "stop_due", 2],
    ["graceful", "stop_due", 5],
    ["force", "stop_due", 15],
    ["force", "stop_due", 30],
    ["force", "stop_due", 60],
    ["force", "quarantined", 60, "quarantined"],
    ["force", "quarantined", 120],
    ["force", "quarantined", 300],
  ]);
});

test("a backend that could not be asked costs no attempt, and moves nothing to another ladder", () => {
  for (const before of [
    aLease({ phase: "stop_due", attempts: 5 }),
    aLease({ phase: "quarantined", attempts: 6 }),
    aLease({ phase: "debt", attempts: 9 }),
  ]) {
    const parked = after(before, stopNotSent(after(before, stopSent(before, NOW)), missed));
    expect(parked).toMatchObject({
      phase: before.phase,
      attempts: before.attempts,
      attemptDeadlineAt: null,
      nextAttemptAt: NOW + 2_000,
    });
  }
});

test("scenario 27: a stop becomes a forced one, and never a graceful one again", () => {
  const gentle = aLease({ phase: "stopping", attempts: 1 });
  const forced = aHolding({ desired: "deleted", deleteMode: "force" }).sandbox;
  expect([stopModeOf(gentle, undefined), stopModeOf(gentle, forced)]).toEqual(["graceful", "force"]);
  expect(stopModeOf({ ...gentle, stopMode: "force" }, aHolding({}).sandbox)).toBe("force");
  expect(stopOrdered(aHolding(forced), aLiveLease(), "delete_requested", NOW)).toMatchObject({
    leases: { i1: { stopMode: "force" } },
  });
});

const evidence: [string, Partial<Lease>, typeof exited | typeof notFound, Evidence["kind"] | undefined][] = [
  ["seen to be over", {}, exited, "exited"],
  ["but an earlier create may still arrive", { settleUntil: NOW + 1 }, exited, undefined],
  ["until its window is over", { settleUntil: NOW }, exited, "exited"],
  ["not to be found once is nothing", {}, notFound, undefined],
  ["twice at once is nothing, either", { missingSince: NOW - 4_999 }, notFound, undefined],
  ["twice, apart, is evidence", { missingSince: NOW - 5_000 }, notFound, "not_found_after_settle"],
  ["nothing was ever asked for", { createSentAt: null }, exited, "never_requested"],
  ["which must be sure, too", { createSentAt: null }, notFound, undefined],
  ["but not before all has settled", { missingSince: 1, settleUntil: NOW + 1 }, notFound, undefined],
];

test.each(evidence)("evidence: %s", (_, over, seen, kind) => {
  expect(evidenceOf(aLease({ phase: "stopping", createSentAt: NOW - 9, ...over }), seen, NOW)).toEqual(
    kind && { kind, at: NOW, detail: seen.detail },
  );
});

test("what is not proof yet is looked at again when it can be, and costs no attempt", () => {
  const next = (over: Partial<Lease>) => {
    const lease = aLease({ phase: "stopping", attempts: 2, ...over });
    const { nextAttemptAt, attempts, phase, missingSince } = after(lease, unproven(lease, NOW));
    return [phase, attempts, nextAttemptAt, missingSince];
  };
  expect([
    next({}),
    next({ missingSince: NOW - 1_000 }),
    next({ settleUntil: NOW + 60_000 }),
    next({ phase: "debt", settleUntil: NOW + 60_000 }),
  ]).toEqual([
    ["stop_due", 1, NOW + 5_000, NOW],
    ["stop_due", 1, NOW + 4_000, NOW - 1_000],
    ["stop_due", 1, NOW + 60_000, NOW],
    ["debt", 1, NOW + 60_000, NOW],
  ]);
});

const proof: Evidence = { kind: "exited", at: NOW, detail: "pid 7 is gone" };
const death = (cause: string) => ({
  lastDeath: { cause, at: new Date(NOW).toISOString(), detail: "pid 7 is gone" },
});

const sent = (over: Partial<Lease>) => aLease({ phase: "stopping", createSentAt: 1, ...over });

const conclusions: [string, Lease, Parameters<typeof aHolding>[0], object | undefined][] = [
  ["a death has its cause", aLiveLease({ phase: "stopping", stopReason: "idle" }), {}, death("idle")],
  [
    "one that never ran is a failed launch",
    sent({ stopReason: "launch_failed", lastError: "no image" }),
    { launchFailures: 1 },
    { launchFailures: 2, failure: "launch_failed: no image (pid 7 is gone)" },
  ],
  [
    "three are enough",
    sent({ stopReason: "startup_deadline" }),
    { launchFailures: 3 },
    { launchFailures: 3, failure: "startup_deadline: pid 7 is gone" },
  ],
  ["one that was never asked for did not fail", aLease({ phase: "reserved" }), {}, {}],
  [
    "unless it could not be prepared",
    aLease({ phase: "stopping", stopReason: "launch_failed", lastError: "no image" }),
    {},
    { launchFailures: 1, failure: "launch_failed: no image (pid 7 is gone)" },
  ],
  ["no failure if nobody wanted it any more", sent({}), { desired: "stopped" }, {}],
  ["a late one was counted before", sent({ stopReason: "ghost" }), {}, {}],
  ["a debt says nothing of its sandbox", aLiveLease({ phase: "debt" }), {}, undefined],
  ["nor does an orphan", aLease({ phase: "stopping", origin: "orphan" }), {}, undefined],
];

test.each(conclusions)("gone: %s", (_, lease, sandbox, expected) => {
  const change = concluded(aHolding(sandbox, lease), lease, proof);
  expect(change.sandbox).toEqual(expected as never);
  expect(after(lease, change)).toMatchObject({ phase: "gone", evidence: proof, nextAttemptAt: null });
});

test("an instance without a sandbox ends with nothing but its own row", () => {
  const orphan = aLease({ phase: "stopping", origin: "orphan", stopReason: "orphan", attempts: 1 });
  expect(concluded(anOrphanage(orphan), orphan, proof)).toEqual({
    leases: {
      i1: {
        phase: "gone",
        evidence: proof,
        attemptDeadlineAt: null,
        nextAttemptAt: null,
        idleCheckAt: null,
        hardStopAt: null,
      },
    },
    entries: [
      {
        type: "gone",
        cause: "orphan",
        detail: { generation: 1, evidence: "exited", what: "pid 7 is gone", attempts: 1 },
      },
    ],
  });
});

test("scenario 33: what an operator abandons is a debt that is hunted on, by force", () => {
  const stuck = aLease({ phase: "quarantined", attempts: 7, stopReason: "idle", nextAttemptAt: NOW + 9 });
  const change = abandoned(aHolding({}, stuck), { reason: "dead host", now: NOW });
  expect(after(stuck, change)).toMatchObject({
    phase: "debt",
    attempts: 7,
    stopReason: "abandoned",
    stopMode: "force",
    nextAttemptAt: NOW,
  });
  expect(change.sandbox).toBeUndefined();
  expect(change.entries).toEqual([
    {
      type: "abandoned",
      cause: "operator",
      actor: "operator",
      detail: { reason: "dead host", generation: 1, phase: "quarantined" },
    },
  ]);
});

test("a launch that cannot work is cleared away at once", () => {
  const failed = { error: "no image", now: NOW, callMs: 40_000 };
  const sent = { phase: "creating", attempts: 1, settleUntil: NOW + 50_000 } as const;
  expect(after(aLease(sent), launchFailed(aLease(sent), failed))).toEqual(
    aLease({
      phase: "stop_due",
      stopReason: "launch_failed",
      stopMode: "force",
      attempts: 0,
      nextAttemptAt: NOW,
      lastError: "no image",
      settleUntil: null,
    }),
  );
  // What an earlier call, whose answer was lost, had asked for may still arrive, but not for as long as this call took.
  const again = aLease({ ...sent, attempts: 2 });
  expect(after(again, launchFailed(again, failed)).settleUntil).toBe(NOW + 10_000);
});

test("scenario 52: time that nobody saw pass is given back, but for a hard end", () => {
  const claim = { claimId: "c", holder: "h", fence: 1, tokenHash: "", expiresAt: NOW + 5 };
  const live = aLiveLease({ hardStopAt: NOW + 9, nextAttemptAt: NOW + 1, missingSince: NOW });
  const debt = aLease({ instanceId: "d", phase: "debt", nextAttemptAt: NOW + 2 });
  const holding = aHolding({ turns: [turn], claim, diskRetryAt: NOW + 3, lastUsedAt: NOW }, live, [debt]);
  for (const byMs of [3_600_000, -3_600_000]) {
    const change = shifted(holding, { from: NOW, to: NOW + byMs });
    // A clock that is put back does not put a creation into the future.
    const createdAt = Math.min(NOW - 5_000, NOW + byMs);
    expect(change.sandbox).toEqual({
      createdAt,
      lastUsedAt: NOW + byMs,
      diskRetryAt: NOW + 3 + byMs,
      turns: [{ ...turn, expiresAt: turn.expiresAt + byMs }],
      claim: { ...claim, expiresAt: NOW + 5 + byMs },
    });
    expect(after(live, change)).toEqual({
      ...live,
      createdAt,
      notAfter: live.notAfter + byMs,
      startupDeadlineAt: live.startupDeadlineAt + byMs,
      idleCheckAt: NOW + 1_799_000 + byMs,
      nextAttemptAt: NOW + 1 + byMs,
      missingSince: null,
    });
    expect(after(debt, change)).toMatchObject({ nextAttemptAt: NOW + 2 + byMs, phase: "debt" });
  }
});
