import { expect, test } from "bun:test";
import { dueAt, leaseDueAt } from "./due.ts";
import { aHolding, aLease, aLiveLease, anOrphanage, NOW } from "./example-rows.ts";
import { type Desired, isHolding, type Lease, type Ledger, phases, type SandboxRow } from "./lease.ts";
import { nextStep } from "./next-step.ts";
import { policyOf } from "./policy.ts";

const deadlines: [string, Lease, number | null][] = [
  ["reserved is due at once", aLease({ phase: "reserved" }), NOW - 5_000],
  [
    "or when it looks again how far a fetch is",
    aLease({ phase: "reserved", nextAttemptAt: NOW + 1 }),
    NOW + 1,
  ],
  ["creating at its next try", aLease({ phase: "creating", nextAttemptAt: NOW + 1 }), NOW + 1],
  [
    "or at its deadline",
    aLease({ phase: "creating", nextAttemptAt: NOW + 9, startupDeadlineAt: NOW + 2 }),
    NOW + 2,
  ],
  ["starting at once", aLease({ phase: "starting" }), NOW - 5_000],
  ["live when it may be idle", aLiveLease({ idleCheckAt: NOW + 3 }), NOW + 3],
  ["or must end", aLiveLease({ hardStopAt: NOW + 4 }), NOW + 4],
  ["out of reach, at the next attempt", aLiveLease({ idleCheckAt: 1, nextAttemptAt: NOW + 5 }), NOW + 5],
  ["without any time, at once", aLiveLease({ idleCheckAt: null, hardStopAt: NOW + 4 }), NOW - 5_000],
  ["stop_due at its next try", aLease({ phase: "stop_due", nextAttemptAt: NOW + 6 }), NOW + 6],
  ["stopping when its try is given up", aLease({ phase: "stopping", attemptDeadlineAt: NOW + 7 }), NOW + 7],
  ["quarantined at its next look", aLease({ phase: "quarantined", nextAttemptAt: NOW + 8 }), NOW + 8],
  ["a debt as well", aLease({ phase: "debt", nextAttemptAt: NOW + 9 }), NOW + 9],
  ["gone never", aLease({ phase: "gone", nextAttemptAt: NOW + 9, hardStopAt: 1 }), null],
];

test.each(deadlines)("%s", (_, lease, expected) => {
  expect(leaseDueAt(lease)).toBe(expected);
});

test("a sandbox is due for its disk and its turns", () => {
  const turns = [{ turnId: "t", startedAt: 1, expiresAt: NOW + 2 }];
  const ephemeral = policyOf({ filesystem: "ephemeral" });
  const due = (sandbox: Partial<SandboxRow>, lease?: Lease) => dueAt(aHolding(sandbox, lease));
  expect([
    due({}),
    due({ turns }),
    due({ desired: "deleted", turns, diskRetryAt: NOW + 1 }),
    due({ policy: ephemeral }),
    due({ policy: ephemeral, hasDisk: false }),
    due({ policy: ephemeral }, aLiveLease({ idleCheckAt: NOW + 9 })),
  ]).toEqual([null, NOW + 2, NOW + 1, NOW - 5_000, null, NOW + 9]);
});

// Every combination of what the rows may say about time, seen from both ends: the loop takes up what is due, so what is
// due must have something to be done, or the loop would take it up again and again; and what waits must come due.

test("every phase but gone has a timer (S12)", () => {
  const without = everyLease().filter((lease) => (leaseDueAt(lease) === null) !== (lease.phase === "gone"));
  expect(without).toEqual([]);
});

test("what is due is acted on, whether its keeper is reached or not: no busy loop (L4)", () => {
  const idle = everyLedger().flatMap((ledger) =>
    [true, false].flatMap((connected) => {
      const due = dueAt(ledger);
      const step = nextStep(ledger, { connected });
      const isForNothing = due !== null && due <= NOW && (step.do === "rest" || step.do === "wait");
      return isForNothing ? [shown(ledger, { connected, due, step })] : [];
    }),
  );
  expect(idle.slice(0, 3)).toEqual([]);
});

test("what waits comes due by then, and not before there is something to do", () => {
  const wrong = everyLedger().flatMap((ledger) =>
    [true, false].flatMap((connected) => {
      const due = dueAt(ledger);
      const step = nextStep(ledger, { connected });
      if (step.do !== "wait") return [];
      const isTaken = due !== null && due <= step.until && due > NOW && step.until > NOW;
      return isTaken ? [] : [shown(ledger, { connected, due, step })];
    }),
  );
  expect(wrong.slice(0, 3)).toEqual([]);
});

test("what is to be done is due: whoever wrote the wish may die before it acts, and another must see it (L2)", () => {
  const unseen = everyLedger().flatMap((ledger) => {
    const due = dueAt(ledger);
    const step = nextStep(ledger, { connected: true });
    // An attempt under way is its maker's until its time is over, and a grave waits for nobody.
    const isUnderWay = ledger.lease?.phase === "stopping" || step.do === "bury";
    if (step.do === "rest" || step.do === "wait" || isUnderWay) return [];
    return due === null || due > NOW ? [shown(ledger, { due, step })] : [];
  });
  expect(unseen.slice(0, 3)).toEqual([]);
});

test("where nothing at all is due, nothing is left to do but to reach a keeper", () => {
  const forgotten = everyLedger().flatMap((ledger) => {
    const step = nextStep(ledger, { connected: true });
    return dueAt(ledger) === null && step.do !== "rest" ? [shown(ledger, { step })] : [];
  });
  expect(forgotten.slice(0, 3)).toEqual([]);
});

const TIMES = [null, NOW - 1, NOW, NOW + 1];

/** Each phase with each of its times in the past, now, to come, and not written. */
function everyLease(): Lease[] {
  const leases: Lease[] = [];
  for (const phase of phases)
    for (const nextAttemptAt of TIMES)
      for (const idleCheckAt of TIMES)
        for (const hardStopAt of TIMES)
          for (const startupDeadlineAt of [NOW, NOW + 2])
            leases.push(
              aLease({
                phase,
                nextAttemptAt,
                idleCheckAt,
                hardStopAt,
                startupDeadlineAt,
                notAfter: startupDeadlineAt,
                attemptDeadlineAt: phase === "stopping" ? idleCheckAt : null,
              }),
            );
  return leases;
}

function everyLedger(): Ledger[] {
  const leases = everyLease();
  const current = [undefined, ...leases.filter(({ phase }) => phase !== "gone" && phase !== "debt")];
  const debts = [[], ...leases.filter(({ phase }) => phase === "debt").map((debt) => [debt])];
  const sandboxes = everySandbox();
  // Beside an instance its disk waits, whatever its row says.
  const plain = sandboxes.filter(({ hasDisk, diskRetryAt }) => hasDisk && diskRetryAt === null);
  return [
    ...current.flatMap((lease) => plain.map((sandbox) => aHolding(sandbox, lease))),
    ...current.map((lease) => anOrphanage(lease)),
    ...debts.flatMap((some) => [anOrphanage(undefined, some), aHolding({}, aLiveLease(), some)]),
    ...debts.flatMap((some) => sandboxes.map((sandbox) => aHolding(sandbox, undefined, some))),
  ];
}

function everySandbox(): Partial<SandboxRow>[] {
  const policies = [policyOf({}), policyOf({ onIdle: "keep" }), policyOf({ persistent: false })];
  const desires: Desired[] = ["active", "stopped", "deleted"];
  const sandboxes: Partial<SandboxRow>[] = [];
  for (const desired of desires)
    for (const policy of policies)
      for (const hasDisk of [true, false])
        for (const diskRetryAt of [null, NOW, NOW + 1])
          for (const expiresAt of TIMES)
            sandboxes.push({
              desired,
              policy,
              hasDisk,
              diskRetryAt,
              turns: expiresAt === null ? [] : [{ turnId: "t", startedAt: 1, expiresAt }],
            });
  return sandboxes;
}

/** Enough of it to read. */
function shown(ledger: Ledger, found: object): object {
  const { phase, nextAttemptAt, idleCheckAt, hardStopAt, startupDeadlineAt } = ledger.lease ?? aLease();
  const sandbox = isHolding(ledger) ? { ...ledger.sandbox, spec: undefined } : undefined;
  const lease = { phase, nextAttemptAt, idleCheckAt, hardStopAt, startupDeadlineAt };
  return { ...found, lease: ledger.lease && lease, sandbox, debts: ledger.debts.length };
}
