import { expect, test } from "bun:test";
import { aHolding, aLease, aLiveLease, anOrphanage, NOW } from "./example-rows.ts";
import type { Lease, Ledger, SandboxRow } from "./lease.ts";
import { nextStep, type Step } from "./next-step.ts";

const ephemeral = {
  persistent: true,
  filesystem: "ephemeral",
  onIdle: "remove",
  lifetimeSeconds: 60,
  maxLifetimeSeconds: null,
  turnTimeoutSeconds: 60,
  persistAcrossRestarts: true,
} as const;
const overdueTurn = { turnId: "t1", startedAt: 1, expiresAt: NOW };
const openTurn = { turnId: "t2", startedAt: 1, expiresAt: NOW + 1 };

const withoutLease: [string, Partial<SandboxRow>, Step][] = [
  ["nothing launches without demand", {}, { do: "rest" }],
  ["a stopped one rests, with its disk", { desired: "stopped" }, { do: "rest" }],
  ["a deleted sandbox loses its disk", { desired: "deleted" }, { do: "remove-disk" }],
  [
    "but not before its next try",
    { desired: "deleted", diskRetryAt: NOW + 1 },
    { do: "wait", until: NOW + 1 },
  ],
  ["and at that very moment", { desired: "deleted", diskRetryAt: NOW }, { do: "remove-disk" }],
  ["without a disk it is buried", { desired: "deleted", hasDisk: false }, { do: "bury" }],
  ["what an ephemeral one leaves is removed", { policy: ephemeral }, { do: "remove-disk" }],
  ["once", { policy: ephemeral, hasDisk: false }, { do: "rest" }],
  ["a turn that nobody renewed ends", { turns: [overdueTurn, openTurn] }, expired("t1")],
  ["also of a sandbox that is to be deleted", { desired: "deleted", turns: [overdueTurn] }, expired("t1")],
];

test.each(withoutLease)("without an instance: %s", (_, sandbox, expected) => {
  expect(nextStep(aHolding(sandbox), { connected: false })).toEqual(expected);
});

interface Case {
  sandbox?: Partial<SandboxRow>;
  lease: Lease;
  connected?: boolean;
  step: (lease: Lease) => Step;
}

const launch = (lease: Lease): Step => ({ do: "launch", lease });
const connect = (lease: Lease): Step => ({ do: "connect", lease });
const stop = (lease: Lease): Step => ({ do: "stop", lease });
const pause = (lease: Lease): Step => ({ do: "pause", lease });
const resume = (lease: Lease): Step => ({ do: "resume", lease });
const judge = (lease: Lease): Step => ({ do: "judge-idle", lease });
const order = (because: string) => (lease: Lease) => ({ do: "order-stop", lease, because }) as const;
const wait = (until: number) => () => ({ do: "wait", until }) as const;
const rest = () => ({ do: "rest" }) as const;

const cases: Record<string, Case> = {
  "a reservation is launched": { lease: aLease({ phase: "reserved" }), step: launch },
  "scenario 48: one that nobody acted on in time is ended": {
    lease: aLease({ phase: "reserved", notAfter: NOW }),
    step: order("never_launched"),
  },
  "an unwanted one, too": {
    sandbox: { desired: "stopped" },
    lease: aLease({ phase: "reserved" }),
    step: order("stop_requested"),
  },
  "a launch that was cut off is made again": { lease: aLease({ phase: "creating" }), step: launch },
  "after its backoff": {
    lease: aLease({ phase: "creating", nextAttemptAt: NOW + 9 }),
    step: wait(NOW + 9),
  },
  "until its deadline": {
    lease: aLease({ phase: "creating", startupDeadlineAt: NOW, nextAttemptAt: NOW + 9 }),
    step: order("startup_deadline"),
  },
  "scenario 10: deleting wins over creating": {
    sandbox: { desired: "deleted", deleteReason: "turn_end" },
    lease: aLease({ phase: "creating" }),
    step: order("turn_end"),
  },
  "a started one is connected": { lease: aLease({ phase: "starting" }), step: connect },
  "also if a line is there already: that it lives was not written": {
    lease: aLease({ phase: "starting" }),
    connected: true,
    step: connect,
  },
  "scenario 5: one that never answers is given up": {
    lease: aLease({ phase: "starting", startupDeadlineAt: NOW }),
    step: order("startup_deadline"),
  },
  "a live one with a line rests": { lease: aLiveLease(), connected: true, step: rest },
  "a live one without a line is looked for": { lease: aLiveLease(), step: connect },
  "out of reach it is not idle: the next attempt is waited for": {
    lease: aLiveLease({ idleCheckAt: NOW - 1, nextAttemptAt: NOW + 9 }),
    step: wait(NOW + 9),
  },
  "a line of which the rows do not know is made good": {
    lease: aLiveLease({ nextAttemptAt: NOW - 1 }),
    connected: true,
    step: connect,
  },
  "scenario 11: a live one past its startup deadline lives": {
    lease: aLiveLease({ startupDeadlineAt: 1 }),
    connected: true,
    step: rest,
  },
  "its keeper judges whether it is idle": {
    lease: aLiveLease({ idleCheckAt: NOW }),
    connected: true,
    step: judge,
  },
  "also if nobody wrote down when to ask": {
    lease: aLiveLease({ idleCheckAt: null }),
    connected: true,
    step: judge,
  },
  "one that is to be paused is": { lease: aLiveLease({ phase: "pausing" }), step: pause },
  "and one that is needed again is resumed, after its backoff": {
    lease: aLiveLease({ phase: "resuming", nextAttemptAt: NOW + 9 }),
    step: wait(NOW + 9),
  },
  "at that very moment": {
    lease: aLiveLease({ phase: "resuming", nextAttemptAt: NOW }),
    step: resume,
  },
  "a paused one that was seen rests": { lease: aLiveLease({ phase: "paused" }), connected: true, step: rest },
  "one that this server has not seen is looked at": { lease: aLiveLease({ phase: "paused" }), step: connect },
  "idleness ends a paused one": {
    lease: aLiveLease({ phase: "paused", idleCheckAt: NOW }),
    connected: true,
    step: judge,
  },
  "and so does its hard end": {
    lease: aLiveLease({ phase: "paused", hardStopAt: NOW }),
    connected: true,
    step: order("max_lifetime"),
  },
  "also in the middle of a pause": {
    lease: aLiveLease({ phase: "pausing", hardStopAt: NOW }),
    step: order("max_lifetime"),
  },
  "a stop wins over a resume": {
    sandbox: { desired: "stopped" },
    lease: aLiveLease({ phase: "resuming" }),
    step: order("stop_requested"),
  },
  "a hard end comes whatever happens": {
    lease: aLiveLease({ hardStopAt: NOW, nextAttemptAt: NOW + 9 }),
    step: order("max_lifetime"),
  },
  "an unwanted live one is stopped": {
    sandbox: { desired: "stopped" },
    lease: aLiveLease(),
    connected: true,
    step: order("stop_requested"),
  },
  "a deletion without a reason has the plain one": {
    sandbox: { desired: "deleted" },
    lease: aLiveLease(),
    step: order("delete_requested"),
  },
  "turns end before anything else": {
    sandbox: { turns: [overdueTurn] },
    lease: aLiveLease({ idleCheckAt: NOW }),
    connected: true,
    step: () => expired("t1"),
  },
  "a stop that is due is made": { lease: aLease({ phase: "stop_due" }), step: stop },
  "not before its backoff": {
    lease: aLease({ phase: "stop_due", nextAttemptAt: NOW + 1 }),
    step: wait(NOW + 1),
  },
  "a stop that was cut off is made again": {
    lease: aLease({ phase: "stopping", attemptDeadlineAt: NOW + 9 }),
    step: stop,
  },
  "a quarantined one is tried for ever": {
    lease: aLease({ phase: "quarantined", attempts: 99, nextAttemptAt: NOW }),
    step: stop,
  },
  slowly: {
    lease: aLease({ phase: "quarantined", nextAttemptAt: NOW + 9 }),
    step: wait(NOW + 9),
  },
};

test.each(Object.entries(cases))("%s", (_, { sandbox = {}, lease, connected = false, step }) => {
  expect(nextStep(aHolding(sandbox, lease), { connected })).toEqual(step(lease));
});

const debt = aLease({ instanceId: "d1", phase: "debt", nextAttemptAt: NOW });
const laterDebt = { ...debt, instanceId: "d2", nextAttemptAt: NOW + 5 };

const orphans: [string, Ledger, Step][] = [
  [
    "a debt is hunted beside its sandbox",
    aHolding({ desired: "stopped" }, undefined, [laterDebt, debt]),
    stop(debt),
  ],
  ["and after its sandbox", anOrphanage(undefined, [debt]), stop(debt)],
  [
    "the nearest time is waited for",
    aHolding({}, aLease({ phase: "stop_due", nextAttemptAt: NOW + 9 }), [laterDebt]),
    { do: "wait", until: NOW + 5 },
  ],
  [
    "scenario 38: an orphan waits for its time",
    anOrphanage(aLease({ origin: "orphan", phase: "stop_due", nextAttemptAt: NOW + 9 })),
    { do: "wait", until: NOW + 9 },
  ],
  [
    "scenario 31: an instance whose sandbox's row was lost is stopped, whatever it waited for",
    anOrphanage(aLiveLease({ nextAttemptAt: NOW + 9 })),
    stop(aLiveLease({ nextAttemptAt: NOW + 9 })),
  ],
];

test.each(orphans)("%s", (_, ledger, expected) => {
  expect(nextStep(ledger, { connected: false })).toEqual(expected);
});

function expired(...turnIds: string[]): Step {
  return { do: "expire-turns", turnIds };
}
