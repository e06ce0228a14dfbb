import type { rare } from "./scenarios/rare.ts";

export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The invariants that it must break: to be caught by chance is not to be caught. */
  readonly caughtBy: readonly string[];
  /** What it makes of the product. */
  readonly why: string;
  /** Where it was last caught, if that is far: the search begins there, and then goes through all of them. */
  readonly near?: number;
  /** Chance alone needs very many seeds for it: this scenario gives it the chance. */
  readonly scenario?: keyof typeof rare;
}

/** Mistakes that somebody could make. The simulation must notice each of them, or it is not worth its time. */
export const mutants: readonly Mutant[] = [
  {
    name: "no settle window",
    file: "packages/core/src/transitions.ts",
    find: "if (lease.settleUntil !== null && now < lease.settleUntil) return undefined;",
    replace: "",
    caughtBy: ["S5", "S1"],
    why: "not to be found is believed while a create may still arrive",
    scenario: "late-create",
  },
  {
    name: "404 is absent",
    file: "packages/core/src/transitions.ts",
    find: 'return proof !== "not_found" ||',
    replace: "return true ||",
    caughtBy: ["S5", "S1", "S9"],
    why: "one look that finds nothing is believed, though it may have been answered from a cache",
    near: 194,
  },
  {
    name: "ticket number not checked",
    file: "packages/store/src/saving.ts",
    find: "return sameVersion && ticketOwner === ticket.owner && ticketNo === ticket.no;",
    replace: "return sameVersion;",
    caughtBy: ["S10"],
    why: "a server that was away for longer than its ticket writes what it decided before",
    near: 579,
  },
  {
    name: "attempts kept in memory",
    file: "packages/core/src/transitions.ts",
    find: "attempts: lease.attempts + 1,\n        attemptDeadlineAt: deadline,",
    replace: "attemptDeadlineAt: deadline,",
    caughtBy: ["S11"],
    why: "the row does not count the attempts, so a restart begins the ladder anew",
  },
  {
    name: "backoff from attempt start",
    file: "packages/core/src/transitions.ts",
    find: "nextAttemptAt: now + wait,",
    replace: "nextAttemptAt: (lease.attemptDeadlineAt ?? now) - STOP_TIMEOUT_MS + wait,",
    caughtBy: ["backoff"],
    why: "a slow attempt is followed by the next without a pause",
  },
  {
    name: "idle check outside the transaction",
    file: "packages/server/src/lifecycle/judge-idle.ts",
    find: "await store.save(holding, ordered, shift.ticket);",
    replace: "await store.save((await store.holding(holding.sandboxId)) ?? holding, ordered, shift.ticket);",
    caughtBy: ["idle", "orphan"],
    why: "a use between the check and the order to stop is overlooked, or that its row is another's by now",
    scenario: "last-moment",
  },
  {
    name: "gate opened without re-read",
    file: "packages/server/src/lifecycle/connect.ts",
    find: "await assertStillWanted(holding, deps);",
    replace: "",
    caughtBy: ["S4"],
    why: "a keeper is admitted although its sandbox was deleted meanwhile",
  },
  {
    name: "orphan reaper without grace",
    file: "packages/core/src/sweep.ts",
    find: "because, at: Math.max(at, this.#input.now) }",
    replace: "because, at: this.#input.now }",
    caughtBy: ["orphan"],
    why: "an instance whose row is about to be written, or was forgotten, is stopped at once",
    near: 94,
  },
  {
    name: "reaper on list error",
    file: "packages/server/src/lifecycle/sweeper.ts",
    find: "const found = await this.#list(provider);",
    replace: `const found = await this.#list(provider).catch(() => [] as readonly Found[]);
    for (const { instanceId, sandboxId, phase } of await store.leasesOf(provider)) {
      const ledger = await store.ledger(sandboxId);
      if (phase !== "live" || ledger === undefined || found.some(({ ref }) => ref.sandboxId === sandboxId)) continue;
      const change = { phase: "stop_due", stopReason: "missing", attempts: 0, nextAttemptAt: ledger.readAt } as const;
      await store.save(ledger, { leases: { [instanceId]: change } });
    }`,
    caughtBy: ["S9"],
    why: "what is not in a list is ended, also when the list could not be had",
  },
  {
    name: "tombstone dropped at once",
    file: "packages/server/src/lifecycle/disks.ts",
    find: "const keepUntil = holding.readAt + TOMBSTONE_MS;",
    replace: "const keepUntil = holding.readAt;",
    caughtBy: ["S2"],
    why: "a successor begins again with generations that were used",
    near: 1168,
  },
  {
    name: "capacity check outside the insert",
    file: "packages/store/src/reserving.ts",
    find: "if (refusal !== undefined) throw refusal;",
    replace: "",
    caughtBy: ["S8"],
    why: "two reservations at once both find room for one",
  },
  {
    name: "delete acks before evidence",
    file: "packages/server/src/lifecycle/sandboxes.ts",
    find: 'if (left <= 0) return "deleting";',
    replace: 'if (left <= options.waitMs) return "gone";',
    caughtBy: ["S5"],
    why: "a caller is told that it is gone while it runs",
  },
  {
    name: "ticket ttl shorter than the provider's timeout",
    file: "packages/server/src/lifecycle/shift.ts",
    find: "this.#goodUntil = options.askedAt + options.ticket.ttlMs - MARGIN_MS;",
    replace: "this.#goodUntil = options.askedAt + options.ticket.ttlMs * 10;",
    caughtBy: ["ticket", "S5", "S10"],
    why: "a server acts for longer than it may, beside the one that took its place",
    near: 76,
  },
  {
    name: "create retry drops ref",
    file: "packages/server/src/lifecycle/launch.ts",
    find: "launch(refOf(lease), plan, signal)",
    replace: "launch({ ...refOf(lease), instanceId: `${lease.instanceId}-${lease.attempts}` }, plan, signal)",
    caughtBy: ["S6"],
    why: "a repeated create makes another instance instead of accepting the first",
  },
  {
    name: "turn-end stop in a second transaction",
    file: "packages/server/src/lifecycle/turns.ts",
    find: "const saved = await store.save(holding, change);",
    replace: `const { turns, lastUsedAt } = { ...holding.sandbox, ...change.sandbox };
      const first = await store.save(holding, { ...change, sandbox: { turns, lastUsedAt } });
      const saved = first === undefined ? undefined : await store.save(first, change);`,
    caughtBy: ["S7"],
    why: "a crash between the two leaves a sandbox that nothing removes",
  },
  {
    name: "a spare is given to whoever asks",
    file: "packages/store/src/sandboxes.ts",
    find: "if (!isStillTrue(known, { before: spare }) || !isHolding(ledger) || !isReadySpare(ledger)) return undefined;",
    replace: "if (!isHolding(ledger) || ledger.lease === undefined) return undefined;",
    caughtBy: ["spare"],
    why: "two creates, or two servers, get the same one",
    scenario: "one-spare",
  },
  {
    name: "a host that rests is asked all the same",
    file: "packages/server/src/lifecycle/reconciler.ts",
    find: "if (provider === undefined || this.#deps.hosts.get(provider).nextProbeAt === null) return false;",
    replace: "if (provider !== null) return false;",
    caughtBy: ["L5"],
    why: "calls about a backend that cannot be reached go past its one probe",
    near: 44,
  },
];
