import { heal, strike } from "./chaos.ts";
import { Coverage } from "./coverage.ts";
import { planFaults } from "./faults.ts";
import { everyKeeperIsDead, livenessChecks, onlySweepsRun } from "./invariants/liveness.ts";
import type { Violation } from "./judge.ts";
import { Rng } from "./rng.ts";
import { Trace } from "./trace.ts";
import { Universe } from "./universe.ts";
import { runClient } from "./workload.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** However lively a seed is, it ends: what is too slow for a thousand seeds is never run. */
const MOST_STEPS = 4_000;
/** How often something happens to the world as a whole. */
const STRIKE = 1 / 120;
/** The stop ladder, one slow recheck, and twice the lifetime of an instance that does not say how long it lives. */
const HEALED_WITHIN_MS = 4 * HOUR_MS;
/** What was sent before the healing, and what haunts a backend, has arrived by then. */
const LATEST_MS = 16 * MINUTE_MS;
/** Nothing is to be done: only sweeps may be seen in this time. */
const QUIET_MS = 10 * MINUTE_MS;
/** Longer than any keeper lives without a server. */
const FOR_EVER_MS = 26 * HOUR_MS;

export interface RunResult {
  readonly seed: number;
  readonly steps: number;
  readonly virtualMs: number;
  readonly hash: string;
  readonly violation: Violation | undefined;
  readonly tail: readonly string[];
  readonly counts: Record<string, number>;
}

/** One seed: a time of chaos, then healing, then a look at whether everything came right. */
export function runSeed(seed: number, options: { print?: (line: string) => void } = {}): RunResult {
  const trace = new Trace(options);
  const coverage = new Coverage();
  const universe = createUniverse(seed, { trace, coverage, showsLogs: options.print !== undefined });
  try {
    chaos(universe);
    if (universe.rng.chance(0.04)) endForEver(universe);
    else recover(universe);
  } catch (error) {
    universe.judge.demand(false, "defect", () =>
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    );
  }
  const { steps, now } = universe.scheduler;
  const { violation } = universe.judge;
  return {
    seed,
    steps,
    virtualMs: now,
    hash: trace.hash(),
    violation,
    tail: trace.tail(),
    counts: coverage.counts(),
  };
}

function createUniverse(
  seed: number,
  { trace, coverage, showsLogs }: { trace: Trace; coverage: Coverage; showsLogs: boolean },
): Universe {
  // Its own numbers, so that the shape of a run does not depend on what happens in it.
  const rng = new Rng(seed ^ 0x5bd1e995);
  const copies = rng.chance(0.4);
  const local = { kind: "local", settleMs: 0, copies };
  const remote = { kind: "remote", settleMs: 5 * MINUTE_MS, copies };
  const replicas = Array.from({ length: rng.pick([1, 1, 2, 3]) }, () => ({
    skewMs: rng.between(-5_000, 5_000),
    drift: (rng.next() - 0.5) / 500,
  }));
  const backends = rng.pick([[local], [remote], [local, remote]]);
  const slots = rng.chance(0.2) ? rng.between(1, 3) : null;
  const plan = planFaults(rng);
  const spares = rng.pick([0, 1, 1, 2]);
  return new Universe({ seed, plan, backends, replicas, slots, spares, trace, coverage, showsLogs });
}

function chaos(universe: Universe): void {
  const { rng, scheduler, replicas } = universe;
  universe.timerGrainMs = rng.pick([0, 2_000, 10_000]);
  for (const replica of replicas) replica.start();
  const clients = startClients(universe);
  const until = rng.between(5, 40) * MINUTE_MS;
  while (scheduler.steps < MOST_STEPS && clients.size > 0 && universe.step(until)) {
    if (rng.chance(STRIKE)) strike(universe);
    if (rng.chance(1 / 400)) universe.backup = universe.database.backup();
  }
}

/** Those that are not done yet. */
function startClients(universe: Universe): Set<string> {
  const { rng, judge } = universe;
  const names = Array.from({ length: rng.between(1, 4) }, (_, i) => `client${i}`);
  const going = new Set(names);
  for (const name of names) {
    runClient(universe, { name, count: rng.between(2, 8) }).then(
      () => going.delete(name),
      (error: unknown) => judge.demand(false, "defect", () => String(error)),
    );
  }
  return going;
}

function recover(universe: Universe): void {
  const { judge, witness } = universe;
  heal(universe);
  universe.timerGrainMs = 30_000;
  universe.advance(LATEST_MS);
  const unmet = () => livenessChecks.find(([, holds]) => holds(universe) !== undefined);
  const rounds = HEALED_WITHIN_MS / (30 * 1000);
  for (let i = 0; i < rounds && judge.violation === undefined && unmet() !== undefined; i++)
    universe.advance(30_000);
  if (judge.violation !== undefined) return;
  for (const [name, holds] of livenessChecks) {
    const wrong = holds(universe);
    judge.demand(wrong === undefined, name, () => wrong ?? "");
  }
  universe.advance(MINUTE_MS);
  witness.rates.calls.clear();
  universe.advance(QUIET_MS);
  onlySweepsRun(universe);
}

/** Nobody ever comes back. */
function endForEver(universe: Universe): void {
  universe.say("!! every server is gone for ever");
  for (const replica of universe.replicas) {
    replica.isGoneForEver = true;
    replica.kill();
  }
  universe.faults.heal();
  universe.isHealed = true;
  universe.advance(FOR_EVER_MS);
  everyKeeperIsDead(universe);
}
