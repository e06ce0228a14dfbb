import {
  continuityOf,
  type Holding,
  inTheWay,
  isAtLeast,
  lossesOf,
  MAX_LAUNCH_FAILURES,
  type Provider,
  type SandboxRow,
  type SnapshotRow,
  type Store,
  stateOf,
  type Tombstone,
} from "@holdfast/core";
import { type Continuity, type EnsureSandbox, HoldfastError, Policy, SandboxSpec } from "@holdfast/protocol";
import { differences } from "./spec-difference.ts";

// Why a call about a sandbox is not carried out, in words for whoever made it.

/** What a call says beside its own matter. */
export interface Asked {
  /** What the caller remembers of the sandbox; a mismatch is an error before anything is woken. */
  readonly generation?: number;
  /** Accept a new instance on the old disk. */
  readonly accept?: Continuity;
  /** The turn that the call belongs to; it is renewed. */
  readonly turnId?: string;
  readonly claimToken?: string;
  /** How long to wait for room. */
  readonly queueMs?: number;
}

/** A snapshot is restored where it is. */
export function checkPlace({ kind }: Provider, snapshot: SnapshotRow | undefined): void {
  if (snapshot === undefined || snapshot.provider === kind) return;
  throw new HoldfastError(
    "invalid_argument",
    `snapshot ${snapshot.name} is on provider ${snapshot.provider}, and not on ${kind}`,
    {
      hint: `take it there first: holdfast export ${snapshot.name} | holdfast import --provider ${kind} -`,
      started: "no",
    },
  );
}

/** What was installed into a container is of use on its own image alone. */
export function checkImage({ image }: SandboxSpec, snapshot: SnapshotRow | undefined): void {
  const hasLayer = snapshot?.parts.some((part) => part.image !== undefined) ?? false;
  if (snapshot === undefined || !hasLayer || image === undefined || image === snapshot.spec.image) return;
  const { name, spec } = snapshot;
  const own = spec.image === undefined ? "the default image" : spec.image;
  throw new HoldfastError(
    "invalid_argument",
    `snapshot ${name} has files that were installed on ${own}, and cannot be laid over ${image}`,
    {
      hint: `leave out \`image\`; or take what is in /workspace and the home directory alone: holdfast export ${name} | holdfast import - --provider ${snapshot.provider}`,
      started: "no",
    },
  );
}

/** Where several servers share the sandboxes there is no one server that they could end with. */
export function checkBound({ isShared }: Pick<Store, "isShared">, policy: Partial<Policy>): void {
  if (!isShared || policy.persistAcrossRestarts !== false) return;
  throw new HoldfastError(
    "unsupported",
    "several servers may share this database: a sandbox ends with none of them",
    {
      hint: "leave out persistAcrossRestarts: false, or use persistent: false with turns",
      started: "no",
    },
  );
}

export function checkCopies({ kind, snapshots }: Provider, { snapshotOnReap }: Partial<Policy>): void {
  if (snapshotOnReap !== true || snapshots !== undefined) return;
  throw new HoldfastError("unsupported", `provider ${kind} cannot make snapshots`, {
    hint: "leave out snapshotOnReap, or choose a provider that can",
    started: "no",
  });
}

export function noSuchSnapshot(idOrName: string): HoldfastError {
  return new HoldfastError("not_found", `there is no snapshot ${idOrName}`, {
    hint: "list them: `holdfast snapshot ls`, GET /v1/snapshots",
    started: "no",
  });
}

/** A policy that is not asked for may be any. */
export function sameSpec(found: Holding, wanted: EnsureSandbox): Holding {
  const { spec, policy } = parts(wanted);
  const has = Object.fromEntries(
    Object.keys(policy).map((key) => [key, found.sandbox.policy[key as keyof Policy]]),
  );
  const difference = {
    ...differences(eachLimit(found.sandbox.spec), eachLimit(spec)),
    ...differences(has, policy),
  };
  if (Object.keys(difference).length === 0) return found;
  const message = `sandbox ${found.sandbox.name} exists, and is another: ${differenceText(difference)}`;
  throw new HoldfastError("spec_conflict", message, {
    hint: "ask for what it has, or choose another name; `holdfast update` changes how long it lives",
    details: { difference },
    started: "no",
  });
}

/** A limit is named by itself: the others may well be the same. */
function eachLimit({ limits = {}, ...rest }: SandboxSpec): Record<string, unknown> {
  return {
    ...rest,
    ...Object.fromEntries(Object.entries(limits).map(([key, value]) => [`limits.${key}`, value])),
  };
}

/** More than that is for `details`. */
const LONGEST_VALUE = 40;

function differenceText(difference: ReturnType<typeof differences>): string {
  const parts = Object.entries(difference).map(([key, { has, wanted }]) => {
    const [is, not] = [has, wanted].map((value) => (value === null ? "not set" : JSON.stringify(value)));
    const isLong = Math.max(is?.length ?? 0, not?.length ?? 0) > LONGEST_VALUE;
    return isLong ? `${key} differs` : `its ${key} is ${is}, asked for was ${not}`;
  });
  return parts.join("; ");
}

/** What a request asks for: of the instance, and of its life. */
export function parts(request: EnsureSandbox): { spec: SandboxSpec; policy: Partial<Policy> } {
  const { labels: _labels, ...asked } = request;
  const spec: Record<string, unknown> = {};
  const policy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(asked)) {
    if (value === undefined) continue;
    if (key in Policy.shape) policy[key] = value;
    else spec[key] = value;
  }
  return { spec: SandboxSpec.parse(spec), policy: policy as Partial<Policy> };
}

/** Before anything is woken: a sleeping sandbox would come back as the next generation. */
export function checkMemory(holding: Holding, { generation, accept }: Asked): void {
  if (generation === undefined) return;
  const awake = holding.lease !== undefined && stateOf(holding) !== "stopping";
  const present = awake ? holding.sandbox.generation : holding.sandbox.generation + 1;
  const continuity = continuityOf(holding.sandbox, present, generation);
  if (isAtLeast(continuity, accept ?? "same-process")) return;
  const { lastDeath } = holding.sandbox;
  const losses = lossesOf(holding.sandbox, present, generation);
  throw new HoldfastError("state_lost", lostText(holding.sandbox, generation), {
    details: { continuity, generation: holding.sandbox.generation, lastDeath, losses },
    hint: whatIsLeft[continuity],
    started: "no",
  });
}

const whatIsLeft: Record<Continuity, string> = {
  "same-process": "it is the same",
  "same-filesystem":
    "its files are there, its processes are not: send If-Continuity: same-filesystem to go on with that",
  restored:
    "a part of its files is lost, as details.losses says: send If-Continuity: restored to go on with the rest",
  fresh: "nothing of it is left: begin again without If-Generation",
};

function lostText({ name, generation, lastDeath }: SandboxRow, remembered: number): string {
  if (remembered !== generation) return `sandbox ${name} is at generation ${generation}, not ${remembered}`;
  const how = lastDeath === null ? "" : ` (${lastDeath.cause}, at ${lastDeath.at})`;
  return `generation ${generation} of sandbox ${name} has ended${how}`;
}

export function refuseHopeless({ sandbox, lease }: Holding): void {
  if (sandbox.desired === "deleted") throw deleting(sandbox);
  if (lease === undefined && sandbox.launchFailures >= MAX_LAUNCH_FAILURES) throw launchFailed(sandbox);
}

/** The reconciler came to rest and it still does not run: why, and when it is worth asking again. */
export function stuck(holding: Holding): HoldfastError {
  const { sandbox } = holding;
  const lease = inTheWay(holding);
  const nextAttemptAt = lease === undefined ? sandbox.diskRetryAt : lease.nextAttemptAt;
  const details = {
    lastError: lease === undefined ? sandbox.failure : lease.lastError,
    ...(nextAttemptAt !== null && { nextAttemptAt: new Date(nextAttemptAt).toISOString() }),
  };
  const hint = "it is tried again by itself: ask again after nextAttemptAt";
  const facts = { details, hint, retryable: true, started: "no" } as const;
  switch (lease?.phase) {
    case undefined:
      return new HoldfastError(
        "cleanup_pending",
        `what the last instance of sandbox ${sandbox.name} left behind is still being removed`,
        facts,
      );
    case "stop_due":
    case "stopping":
    case "debt":
      return new HoldfastError(
        "cleanup_pending",
        `the last instance of sandbox ${sandbox.name} is still being stopped`,
        facts,
      );
    case "quarantined":
      return new HoldfastError(
        "cleanup_quarantined",
        `the last instance of sandbox ${sandbox.name} cannot be stopped: ${lease.lastError}`,
        {
          ...facts,
          hint: "it is tried for ever, and at once when it is asked for; an operator may `holdfast abandon` it",
        },
      );
    default:
      return new HoldfastError("unavailable", `the keeper of sandbox ${sandbox.name} does not answer`, facts);
  }
}

export function deleting(sandbox: SandboxRow): HoldfastError {
  return new HoldfastError("deleting", `sandbox ${sandbox.name} is being deleted`, {
    hint: "create a new one",
    started: "no",
  });
}

export function launchFailed(sandbox: SandboxRow): HoldfastError {
  return new HoldfastError(
    "launch_failed",
    `sandbox ${sandbox.name} could not be started: ${sandbox.failure}`,
    {
      hint:
        sandbox.launchFailures >= MAX_LAUNCH_FAILURES
          ? `it failed ${sandbox.launchFailures} times and is left alone: see \`holdfast doctor\`, then \`holdfast start ${sandbox.name}\``
          : "see `holdfast doctor`; the next call tries again",
      details: { launchFailures: sandbox.launchFailures },
      retryable: sandbox.launchFailures < MAX_LAUNCH_FAILURES,
      started: "no",
    },
  );
}

/** It was started for this call and is gone again, and not because it could not be started. */
export function endedMeanwhile({ sandbox }: Holding): HoldfastError {
  const { name, desired, lastDeath } = sandbox;
  if (desired === "stopped") {
    return new HoldfastError("wrong_state", `sandbox ${name} was stopped while it was being started`, {
      hint: "somebody else stopped it; the same call again starts it",
      started: "no",
    });
  }
  return new HoldfastError("keeper_lost", `sandbox ${name} ended as soon as it ran`, {
    hint: "see lastDeath; the same call again starts it",
    details: { lastDeath },
    retryable: true,
    started: "no",
  });
}

export function notRunning(holding: Holding): HoldfastError {
  const { name, lastDeath } = holding.sandbox;
  const state = stateOf(holding);
  const verb = state === "paused" ? "resume" : "start";
  return new HoldfastError("wrong_state", `sandbox ${name} is ${state}`, {
    hint: `${verb} it first (\`holdfast ${verb} NAME\`); only looking never ${verb}s it`,
    started: "no",
    details: { state, lastDeath },
  });
}

export function notPaused({ sandbox, lease }: Holding): HoldfastError {
  return new HoldfastError(
    "unavailable",
    `sandbox ${sandbox.name} could not be paused: ${lease?.lastError}`,
    {
      hint: "it runs on; see `holdfast events NAME`",
      retryable: true,
      started: "no",
    },
  );
}

export function absent(idOrName: string, tombstone: Tombstone | undefined): HoldfastError {
  if (tombstone === undefined) {
    return new HoldfastError("not_found", `there is no sandbox ${idOrName}`, {
      hint: "list them with `holdfast ls` or GET /v1/sandboxes",
      started: "no",
    });
  }
  const at = new Date(tombstone.deletedAt).toISOString();
  const why = tombstone.cause === null ? "" : ` (${tombstone.cause})`;
  return new HoldfastError("gone", `sandbox ${idOrName} was deleted at ${at}${why}`, {
    details: { deletedAt: at, cause: tombstone.cause },
    hint: `its files are gone, its timeline is not: \`holdfast events ${tombstone.name}\` says why; create a new one`,
    started: "no",
  });
}

export function noSuchProvider(kind: string | undefined, known: readonly string[]): HoldfastError {
  return new HoldfastError("invalid_argument", `there is no provider ${kind}`, {
    hint: `this server has: ${known.join(", ")}; its operator chooses them (serve --providers local,docker)`,
    started: "no",
  });
}
