import {
  backoffMs,
  type Clock,
  type EvidenceKind,
  type Holding,
  type InstanceRef,
  type Lease,
  type Provider,
  type Step,
  type Store,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Keepers } from "./keepers.ts";
import type { Log } from "./log.ts";

/** One attempt to stop must not hang a row for longer; the provider escalates to SIGKILL well before. */
const STOP_TIMEOUT_MS = 30_000;
/** Graceful attempts before force. */
const GRACEFUL_ATTEMPTS = 2;
const DISK_RETRY_MS = 10_000;

export interface EffectDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly keepers: Keepers;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Something changed outside: the sandbox must be looked at again. */
  readonly kick: (sandboxId: string) => void;
  /** Aborted when the server shuts down: what is half done is left for the next start, not undone. */
  readonly closing: AbortSignal;
}

type Acting = Exclude<Step, { do: "rest" } | { do: "wait" }>;

/** Carries out one step and writes down what came of it. A row that moved on meanwhile is left as it is. */
export async function carryOut(step: Acting, holding: Holding, deps: EffectDeps): Promise<void> {
  switch (step.do) {
    case "launch":
      return launch(holding, step.lease, deps);
    case "connect":
      return connect(holding, step.lease, deps);
    case "order-stop":
      return orderStop(holding, step.because, deps);
    case "stop":
      return stop(holding, step.lease, deps);
    case "drop":
      return conclude(holding, { kind: "never_requested", detail: "nothing was sent to the provider" }, deps);
    case "remove-disk":
      return removeDisk(holding, deps);
    default:
      return step satisfies never;
  }
}

async function launch(before: Holding, lease: Lease, deps: EffectDeps): Promise<void> {
  const { store, clock, closing } = deps;
  // The intent to create is on the disk before the provider hears of it.
  const holding =
    lease.phase === "creating"
      ? before
      : await store.save(before, {
          lease: { phase: "creating", dueAt: lease.startupDeadlineAt },
          entry: { type: "launching", detail: { generation: lease.generation } },
        });
  if (holding === undefined) return;
  const { sandbox } = holding;
  const plan = { spec: sandbox.spec, hostname: sandbox.name, secret: lease.secret };
  const patience = AbortSignal.timeout(Math.max(1, lease.startupDeadlineAt - clock.now()));
  try {
    await providerOf(lease, deps).launch(refOf(lease), plan, AbortSignal.any([closing, patience]));
  } catch (error) {
    if (closing.aborted) throw error;
    const lastError = messageOf(error);
    await store.save(holding, {
      lease: {
        phase: "stop_due",
        stopReason: "launch_failed",
        stopMode: "force",
        lastError,
        dueAt: clock.now(),
      },
      entry: { type: "launch_failed", cause: "launch_failed", detail: { error: lastError } },
    });
    return;
  }
  await store.save(holding, { lease: { phase: "starting" } });
}

async function connect(holding: Holding, lease: Lease, deps: EffectDeps): Promise<void> {
  const { store, keepers, clock, kick, log } = deps;
  try {
    const seen = await providerOf(lease, deps).observe(refOf(lease), AbortSignal.timeout(STOP_TIMEOUT_MS));
    // It died by itself: what it left behind is cleared away by a stop, whose evidence then ends the lease.
    if (seen.state === "absent") return await orderStop(holding, "keeper_lost", deps);
    await keepers.connect({
      instanceId: lease.instanceId,
      socketPath: seen.keeper.path,
      secret: lease.secret,
      fence: lease.fence,
      admit: async (link) => {
        const info = await link.info();
        if (info.instanceId !== lease.instanceId)
          throw new Error(`another instance answered: ${info.instanceId}`);
        await admitIfStillWanted(holding, lease, deps);
        await link.admit({ instanceId: lease.instanceId, generation: lease.generation, fence: lease.fence });
      },
      onEnd: () => kick(lease.sandboxId),
    });
    const adopted = lease.phase === "live";
    await store.save(holding, {
      sandbox: { launchFailures: 0, failure: null },
      lease: {
        phase: "live",
        limits: seen.limits,
        admittedAt: lease.admittedAt ?? clock.now(),
        attempts: 0,
        nextAttemptAt: null,
        lastError: null,
        dueAt: null,
      },
      entry: {
        type: adopted ? "adopted" : "live",
        detail: { generation: lease.generation, instance: seen.detail },
      },
    });
  } catch (error) {
    log.warn("keeper not reached", {
      sandbox: lease.sandboxId,
      generation: lease.generation,
      error: messageOf(error),
    });
    await tryAgainLater(holding, lease, { error, phase: lease.phase }, deps);
  }
}

/** The gate: the row is read again, and only if it still says so may the keeper run anything. */
async function admitIfStillWanted(holding: Holding, lease: Lease, { store }: EffectDeps): Promise<void> {
  const now = await store.holding(holding.sandbox.id);
  if (now?.lease?.version !== lease.version || now.sandbox.desired !== "active") {
    throw new HoldfastError("fence_stale", "the lease moved on before its keeper was admitted");
  }
}

async function orderStop(holding: Holding, because: string, { store, clock }: EffectDeps): Promise<void> {
  const { sandbox } = holding;
  const stopMode = sandbox.desired === "deleted" ? sandbox.deleteMode : "graceful";
  await store.save(holding, {
    lease: {
      phase: "stop_due",
      stopReason: because,
      stopMode,
      attempts: 0,
      nextAttemptAt: null,
      dueAt: clock.now(),
    },
    entry: { type: "stopping", cause: because },
  });
}

async function stop(before: Holding, lease: Lease, deps: EffectDeps): Promise<void> {
  const { store, keepers, clock } = deps;
  const attempts = lease.attempts + 1;
  const holding = await store.save(before, {
    lease: { phase: "stopping", attempts, nextAttemptAt: null, dueAt: clock.now() + STOP_TIMEOUT_MS },
  });
  if (holding?.lease === undefined) return;
  keepers.drop(lease.instanceId);
  const isForced = attempts > GRACEFUL_ATTEMPTS || before.sandbox.deleteMode === "force";
  const mode = isForced ? "force" : lease.stopMode;
  try {
    const seen = await providerOf(lease, deps).stop(refOf(lease), mode, AbortSignal.timeout(STOP_TIMEOUT_MS));
    if (seen.state === "absent")
      return await conclude(holding, { kind: "exited", detail: seen.detail }, deps);
    throw new Error(`it is still there: ${seen.detail}`);
  } catch (error) {
    await tryAgainLater(holding, holding.lease, { error, phase: "stop_due" }, deps);
  }
}

async function removeDisk(holding: Holding, deps: EffectDeps): Promise<void> {
  const { store, clock, log } = deps;
  const { sandbox } = holding;
  const provider = deps.providers.get(sandbox.provider);
  try {
    if (provider === undefined) throw noProvider(sandbox.provider);
    const ref = { installationId: await store.installationId(), sandboxId: sandbox.id };
    const seen = await provider.removeDisk(ref, AbortSignal.timeout(STOP_TIMEOUT_MS * 10));
    if (seen.state === "present") throw new Error(seen.detail);
    await store.bury(sandbox);
  } catch (error) {
    const message = messageOf(error);
    log.error("disk not removed", { sandbox: sandbox.id, error: message });
    await store.save(holding, {
      sandbox: { dueAt: clock.now() + DISK_RETRY_MS, failure: message },
      entry: { type: "disk_not_removed", detail: { error: message } },
    });
  }
}

/** The instance is gone, and this is how we know. */
async function conclude(
  holding: Holding,
  { kind, detail }: { kind: EvidenceKind; detail: string },
  { store, keepers, clock, log }: EffectDeps,
): Promise<void> {
  const { sandbox, lease } = holding;
  if (lease === undefined) return;
  keepers.drop(lease.instanceId);
  const at = clock.now();
  const cause = lease.stopReason ?? "keeper_lost";
  const explained = lease.lastError === null ? detail : `${lease.lastError} (${detail})`;
  const launched = lease.admittedAt !== null;
  const failed = !launched && sandbox.desired === "active";
  await store.save(holding, {
    sandbox: {
      ...(launched && { lastDeath: { cause, at: new Date(at).toISOString(), detail: explained } }),
      // Its disk is next; the pass that is under way goes on to it, or the next start does.
      ...(sandbox.desired === "deleted" && { dueAt: at }),
      ...(failed && { launchFailures: sandbox.launchFailures + 1, failure: explained }),
    },
    lease: { phase: "gone", evidence: { kind, at, detail }, nextAttemptAt: null, dueAt: null },
    entry: { type: "gone", cause, detail: { generation: lease.generation, evidence: kind, seen: detail } },
  });
  log.info("instance gone", { sandbox: sandbox.id, generation: lease.generation, cause, evidence: kind });
}

async function tryAgainLater(
  holding: Holding,
  lease: Lease,
  { error, phase }: { error: unknown; phase: Lease["phase"] },
  { store, clock, random }: EffectDeps,
): Promise<void> {
  // A stop counted its attempt before it was made; a connection that failed is counted here.
  const attempts = phase === "stop_due" ? lease.attempts : lease.attempts + 1;
  const nextAttemptAt = clock.now() + backoffMs(attempts, random());
  const due = phase === "starting" ? Math.min(nextAttemptAt, lease.startupDeadlineAt) : nextAttemptAt;
  await store.save(holding, {
    lease: { phase, attempts, nextAttemptAt: due, dueAt: due, lastError: messageOf(error) },
  });
}

function refOf({ installationId, sandboxId, instanceId, generation }: Lease): InstanceRef {
  return { installationId, sandboxId, instanceId, generation };
}

function providerOf(lease: Lease, { providers }: EffectDeps): Provider {
  const provider = providers.get(lease.provider);
  if (provider === undefined) throw noProvider(lease.provider);
  return provider;
}

function noProvider(kind: string): HoldfastError {
  return new HoldfastError("provider_unavailable", `this server has no provider ${kind}`, {
    hint: "start the server with the configuration that the sandbox was made under",
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
