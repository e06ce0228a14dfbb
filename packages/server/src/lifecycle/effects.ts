import {
  type Acting,
  type Clock,
  concluded,
  type Evidence,
  type Holding,
  type InstanceRef,
  isHolding,
  type Lease,
  type Ledger,
  type Provider,
  type Store,
  stopOrdered,
  turnsEnded,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import { connect } from "./connect.ts";
import { bury, removeDisk } from "./disks.ts";
import type { Hosts } from "./hosts.ts";
import { judgeIdle } from "./judge-idle.ts";
import type { Keepers } from "./keepers.ts";
import type { Lanes } from "./lanes.ts";
import { launch } from "./launch.ts";
import { pause, resume } from "./pause.ts";
import type { Shift } from "./shift.ts";
import { stop } from "./stop.ts";

export interface EffectDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly keepers: Keepers;
  readonly hosts: Hosts;
  readonly lanes: Lanes;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly orphanLimitSeconds: number;
  /** Whether there is a snapshot of its files, which is begun if there is none. Throws why there cannot be one now. */
  readonly haveCopy: (holding: Holding) => Promise<boolean>;
  /** Something changed outside: the sandbox must be looked at again. */
  readonly kick: (sandboxId: string) => void;
  /** Aborted when the server shuts down: what is half done is left for the next start, not undone. */
  readonly closing: AbortSignal;
}

/** Carries out one step and writes down what came of it. A row that moved on meanwhile is left as it is. */
export async function carryOut(step: Acting, ledger: Ledger, shift: Shift, deps: EffectDeps): Promise<void> {
  if (step.do === "stop") return stop(ledger, step.lease, shift, deps);
  // Every other step is about a sandbox that exists; `nextStep` gives no other.
  if (!isHolding(ledger)) throw new Error(`${step.do} without a sandbox: ${ledger.sandboxId}`);
  switch (step.do) {
    case "launch":
      return launch(ledger, step.lease, shift, deps);
    case "connect":
      return connect(ledger, step.lease, shift, deps);
    case "judge-idle":
      return judgeIdle(ledger, step.lease, shift, deps);
    case "pause":
      return pause(ledger, step.lease, shift, deps);
    case "resume":
      return resume(ledger, step.lease, shift, deps);
    case "order-stop":
      return orderStop(ledger, step.lease, { because: step.because, shift }, deps);
    case "expire-turns": {
      const change = turnsEnded(ledger, { turnIds: step.turnIds, cause: "turn_expired", now: ledger.readAt });
      await deps.store.save(ledger, change, shift.ticket);
      return;
    }
    case "remove-disk":
      return removeDisk(ledger, shift, deps);
    case "bury":
      return bury(ledger, shift, deps);
    default:
      return step satisfies never;
  }
}

export async function orderStop(
  holding: Holding,
  lease: Lease,
  { because, shift }: { because: string; shift: Shift },
  { store }: EffectDeps,
): Promise<void> {
  await store.save(holding, stopOrdered(holding, lease, because, holding.readAt), shift.ticket);
}

/** The instance is gone, and this is how we know. */
export async function conclude(
  ledger: Ledger,
  lease: Lease,
  { evidence, shift }: { evidence: Evidence; shift: Shift },
  { store, keepers, log }: EffectDeps,
): Promise<void> {
  keepers.drop(lease.instanceId);
  const saved = await store.save(ledger, concluded(ledger, lease, evidence), shift.ticket);
  if (saved === undefined) return;
  const { sandboxId, generation, stopReason } = lease;
  log.info("instance gone", { sandbox: sandboxId, generation, cause: stopReason, evidence: evidence.kind });
}

export function refOf({ installationId, sandboxId, instanceId, generation }: Lease): InstanceRef {
  return { installationId, sandboxId, instanceId, generation };
}

export function providerOf(
  { provider }: { provider: string },
  { providers }: Pick<EffectDeps, "providers">,
): Provider {
  const found = providers.get(provider);
  if (found !== undefined) return found;
  throw new HoldfastError("provider_unavailable", `this server has no provider ${provider}`, {
    hint: "start the server with the configuration that the sandbox was made under",
  });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The backend as a whole could not be asked: nothing was done, and all its rows wait for one probe. */
export function isUnreachable(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && error.code === "provider_unavailable";
}
