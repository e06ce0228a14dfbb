import { drainMicrotasks } from "bun:jsc";
import type { Change, Store } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Faults } from "../faults.ts";
import type { Rng } from "../rng.ts";
import type { Actor } from "../scheduler.ts";
import type { Fate, Wire } from "../wire.ts";

/** Calls that write: a failure after their commit leaves the caller in doubt. */
const writes: ReadonlySet<string> = new Set([
  "insertSandbox",
  "give",
  "reserve",
  "save",
  "bury",
  "ticket",
  "takeDue",
  "renew",
  "release",
  "takeJobs",
  "finishJob",
  "hurryJob",
  "saveHost",
  "giveBack",
  "insertSnapshot",
  "saveSnapshot",
  "forgetSnapshot",
]);

export interface StoreWitness {
  /** A server sends this call now. */
  asks(actor: Actor, op: keyof Store, args: readonly unknown[]): void;
  /** It was applied: this is what the store answered, whether or not the server ever hears it. */
  applied(actor: Actor, op: keyof Store, args: readonly unknown[], answer: unknown): void;
  /** It was refused, with this. */
  refused(actor: Actor, op: keyof Store, error: unknown): void;
}

interface Options {
  readonly actor: Actor;
  /** The one there is now: a restored backup is another. */
  readonly store: () => Store;
  readonly wire: Wire;
  readonly faults: Faults;
  readonly rng: Rng;
  readonly witness: StoreWitness;
  readonly isCutOff: () => boolean;
}

/** One server's line to the store: the real store, each of its transactions one step of the scheduler. */
export function storePort(options: Options): Store {
  return new Proxy(options.store(), {
    get(store, name) {
      const op = name as keyof Store;
      if (typeof store[op] !== "function") return options.store()[op];
      return (...args: unknown[]) => call(options, op, args);
    },
  });
}

function call(options: Options, op: keyof Store, args: readonly unknown[]): Promise<unknown> {
  const { actor, wire, faults, witness } = options;
  witness.asks(actor, op, args);
  const isWrite = writes.has(op);
  const failsBefore = options.isCutOff()
    ? "the store cannot be reached from here"
    : faults.strikes("store_busy")
      ? "the database is busy"
      : isWrite && faults.strikes("store_error_before_commit")
        ? "the transaction was undone"
        : undefined;
  const failsAfter = failsBefore === undefined && isWrite && faults.strikes("store_error_after_commit");
  const apply = () => {
    if (failsBefore !== undefined) throw unavailable(failsBefore);
    const answer = applied(options, op, args);
    if (failsAfter) throw unavailable("the connection broke before the commit was answered");
    return answer;
  };
  return wire.send({
    actor,
    op: `${actor.name} ${op} ${keyOf(args)}${op === "save" ? changeOf(args) : ""}`,
    fate: fateOf(options),
    apply,
    lingers: false,
  });
}

function applied({ actor, store, witness }: Options, op: keyof Store, args: readonly unknown[]): unknown {
  try {
    const answer = settled((store()[op] as (...args: readonly unknown[]) => Promise<unknown>)(...args));
    witness.applied(actor, op, args, answer);
    return answer;
  } catch (error) {
    witness.refused(actor, op, error);
    throw error;
  }
}

/** The store in memory answers with microtasks alone, so its answer is there as soon as those are done. */
export function settled<T>(promise: Promise<T>): T {
  let outcome: { value: T } | { error: unknown } | undefined;
  promise.then(
    (value) => {
      outcome = { value };
    },
    (error: unknown) => {
      outcome = { error };
    },
  );
  drainMicrotasks();
  const now = outcome as { value: T } | { error: unknown } | undefined;
  if (now === undefined) throw new Error("the store did not answer by microtasks alone");
  if ("error" in now) throw now.error;
  return now.value;
}

function fateOf({ wire, faults, rng }: Options): Fate {
  const plain = wire.plainFate();
  if (!faults.strikes("store_slow")) return plain;
  const afterMs = rng.between(100, 20_000);
  return rng.chance(0.5) ? { ...plain, reply: { afterMs } } : { ...plain, request: { afterMs } };
}

function unavailable(message: string): HoldfastError {
  return new HoldfastError("unavailable", message);
}

/** What the call is about, for the trace. */
function keyOf([first]: readonly unknown[]): string {
  if (typeof first === "string") return first;
  if (typeof first !== "object" || first === null) return "";
  const { sandboxId, key, id, provider } = first as Record<string, unknown>;
  return String(sandboxId ?? key ?? id ?? provider ?? "");
}

/** What a write changes, in a few words. */
function changeOf([, change]: readonly unknown[]): string {
  const { sandbox, leases = {}, found } = change as Change;
  const words = Object.values(leases).map(
    ({ phase, stopReason }) => ` ${phase ?? ""}${stopReason ? `(${stopReason})` : ""}`,
  );
  const wish = sandbox?.desired === undefined ? "" : ` wants ${sandbox.desired}`;
  return `${words.join("")}${wish}${found === undefined ? "" : ` found ${found.instanceId}`}`;
}
