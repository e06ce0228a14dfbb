import type { Lease, SandboxRow } from "./lease.ts";
import { DEFAULT_LIFETIME_SECONDS } from "./policy.ts";
import type { Found, FoundDisk, FoundInstance } from "./provider.ts";

/** Whoever made it may still be about to write its row: another tool, or a store that lost its last commits. */
const CREATION_GRACE_MS = 120_000;
/** A sandbox that nobody here knows may be known to whoever restores the right backup. */
const SHORTEST_ORPHAN_MS = 600_000;
/** A sweep that would end more than this share, and more than a handful, is more likely wrong than right. */
const BRAKE_SHARE = 0.2;
const BRAKE_AT_LEAST = 5;

export type SweepAction =
  /** One that was believed to be gone is there. */
  | { readonly do: "reopen"; readonly lease: Lease }
  /** A row for an instance that has none; it is stopped at `at`. */
  | { readonly do: "record"; readonly found: FoundInstance; readonly because: string; readonly at: number }
  /** Generations were handed out that the rows have forgotten. */
  | { readonly do: "raise"; readonly sandboxId: string; readonly generation: number; readonly fence: number }
  /** The sandbox's row says that there is no disk. */
  | { readonly do: "own-disk"; readonly found: FoundDisk }
  /** A disk whose sandbox has been deleted. */
  | { readonly do: "remove-disk"; readonly found: FoundDisk }
  /**
   * A disk whose sandbox the rows have forgotten: it gets one again, because somebody's work is on it. Its generations
   * go on from those of the leases that there are.
   */
  | ({ readonly do: "recover-disk"; readonly found: FoundDisk } & Numbers);

/** The last ones that were handed out. */
type Numbers = Pick<SandboxRow, "generation" | "fence">;

/** Left alone, and why; for whoever reads the report. */
export interface Spared {
  readonly found: Found;
  readonly because: string;
  readonly until: number | null;
}

export interface SweepInput {
  readonly installationId: string;
  readonly now: number;
  /** Before the list was asked for: what ended later may still be on it. */
  readonly listedAt: number;
  /** The whole list; one that failed never gets here. */
  readonly found: readonly Found[];
  /** Read after the list, so that what was listed and has no row had none when it was made. */
  readonly leases: readonly Lease[];
  readonly sandboxes: ReadonlyMap<string, Pick<SandboxRow, "generation" | "fence" | "hasDisk" | "desired">>;
  readonly tombstones: ReadonlySet<string>;
  /** When each thing without a row was first seen, from the passes before; for those that do not say how old they are. */
  readonly firstSeen: Readonly<Record<string, number>>;
  /** What the brake held back at the last pass. */
  readonly heldBack: readonly string[];
}

export interface SweepPlan {
  readonly actions: readonly SweepAction[];
  readonly spared: readonly Spared[];
  readonly foreign: number;
  readonly firstSeen: Record<string, number>;
  readonly heldBack: readonly string[];
}

/** Compares what is there with the rows. Nothing of another installation, and nothing that is too young, is touched. */
export function planSweep(input: SweepInput): SweepPlan {
  const ours = input.found.filter(({ ref }) => ref.installationId === input.installationId);
  const pass = new Pass(input, ours);
  for (const [sandboxId, numbers] of pass.handedOut) pass.numbers(sandboxId, numbers);
  for (const found of ours) {
    if (found.kind === "instance") pass.instance(found);
    else pass.disk(found);
  }
  const plan = { spared: pass.spared, foreign: input.found.length - ours.length, firstSeen: pass.firstSeen };
  return {
    ...plan,
    ...braked(pass.actions, { ...input, total: ours.filter(isInstance).length }),
  };
}

class Pass {
  readonly actions: SweepAction[] = [];
  readonly spared: Spared[] = [];
  readonly firstSeen: Record<string, number> = {};
  /** By sandbox, from its leases. */
  readonly handedOut: ReadonlyMap<string, Numbers>;
  readonly #input: SweepInput;
  readonly #byInstance: Map<string, Lease>;
  /** Sandboxes of which an instance was found that has no row yet, and those of which a disk was. */
  readonly #withUnrecorded: ReadonlySet<string>;
  readonly #withDisk: ReadonlySet<string>;

  constructor(input: SweepInput, ours: readonly Found[]) {
    this.#input = input;
    this.#byInstance = new Map(input.leases.map((lease) => [lease.instanceId, lease]));
    const unrecorded = ours.filter(isInstance).filter(({ ref }) => !this.#isRecorded(ref.instanceId));
    this.#withUnrecorded = sandboxesOf(unrecorded);
    this.#withDisk = sandboxesOf(ours.filter((found) => !isInstance(found)));
    this.handedOut = handedOut(input.leases);
  }

  /** No later instance may have the number of one that there was. */
  numbers(sandboxId: string, { generation, fence }: Numbers): void {
    const sandbox = this.#input.sandboxes.get(sandboxId);
    if (sandbox === undefined || sandbox.generation >= generation) return;
    this.actions.push({ do: "raise", sandboxId, generation, fence });
  }

  instance(found: FoundInstance): void {
    const lease = this.#byInstance.get(found.ref.instanceId);
    if (lease === undefined) this.#withoutRow(found);
    else if (lease.evidence !== null && lease.evidence.at < this.#input.listedAt)
      this.actions.push({ do: "reopen", lease });
  }

  disk(found: FoundDisk): void {
    const { sandboxId } = found.ref;
    const sandbox = this.#input.sandboxes.get(sandboxId);
    if (sandbox !== undefined && !sandbox.hasDisk) this.actions.push({ do: "own-disk", found });
    if (sandbox !== undefined) return;
    const numbers = this.handedOut.get(sandboxId) ?? { generation: 0, fence: 0 };
    if (this.#input.tombstones.has(sandboxId)) this.actions.push({ do: "remove-disk", found });
    // Before that, whoever used the sandbox would start another instance beside one that runs, maybe by its very number.
    else if (this.#withUnrecorded.has(sandboxId))
      this.spared.push({ found, because: "an instance on it has no row yet", until: null });
    else this.actions.push({ do: "recover-disk", found, ...numbers });
  }

  #isRecorded(instanceId: string): boolean {
    return (this.#byInstance.get(instanceId)?.phase ?? "gone") !== "gone";
  }

  #withoutRow(found: FoundInstance): void {
    const { sandboxId, generation } = found.ref;
    const sandbox = this.#input.sandboxes.get(sandboxId);
    if (this.#input.tombstones.has(sandboxId)) {
      this.#record(found, "its sandbox was deleted", this.#input.now);
    } else if (sandbox === undefined && this.#withDisk.has(sandboxId)) {
      // The disk gets a sandbox again, which this one stands in the way of until its time is over.
      this.#record(found, UNKNOWN, this.#unknownUntil(found));
    } else if (sandbox === undefined) {
      this.#spareUntil(found, UNKNOWN, this.#unknownUntil(found));
    } else if (generation <= sandbox.generation) {
      const until = this.#bornAt(found) + CREATION_GRACE_MS;
      this.#spareUntil(found, "the sandbox has no such instance", until);
    } else {
      // The rows are older than the world: somebody may be using it.
      this.#record(found, "it is newer than the rows", this.#unknownUntil(found));
    }
  }

  #spareUntil(found: FoundInstance, because: string, until: number): void {
    if (until <= this.#input.now) this.#record(found, because, this.#input.now);
    else this.spared.push({ found, because, until });
  }

  #record(found: FoundInstance, because: string, at: number): void {
    this.actions.push({ do: "record", found, because, at: Math.max(at, this.#input.now) });
  }

  #unknownUntil(found: FoundInstance): number {
    const lifetimeMs = (found.lifetimeSeconds ?? DEFAULT_LIFETIME_SECONDS) * 1000;
    return this.#bornAt(found) + Math.max(2 * lifetimeMs, SHORTEST_ORPHAN_MS);
  }

  /** Its own word, or else when it was first seen. */
  #bornAt({ ref, createdAt }: FoundInstance): number {
    const seen = this.#input.firstSeen[ref.instanceId] ?? this.#input.now;
    this.firstSeen[ref.instanceId] = seen;
    return createdAt ?? seen;
  }
}

const UNKNOWN = "its sandbox is not known here";

function sandboxesOf(found: readonly Found[]): Set<string> {
  return new Set(found.map(({ ref }) => ref.sandboxId));
}

function handedOut(leases: readonly Lease[]): Map<string, Numbers> {
  const highest = new Map<string, Numbers>();
  for (const { sandboxId, generation, fence } of leases) {
    const before = highest.get(sandboxId);
    if (before === undefined || before.generation < generation) highest.set(sandboxId, { generation, fence });
  }
  return highest;
}

/** Too many ends at once: each is held back until a second pass finds it again. */
function braked(
  actions: readonly SweepAction[],
  { total, heldBack, now }: Pick<SweepInput, "heldBack" | "now"> & { total: number },
): Pick<SweepPlan, "actions" | "heldBack"> {
  const ends = actions.flatMap((action) => endedBy(action, now) ?? []);
  if (ends.length <= Math.max(BRAKE_AT_LEAST, total * BRAKE_SHARE)) return { actions, heldBack: [] };
  const fresh = ends.filter((id) => !heldBack.includes(id));
  const isHeld = (action: SweepAction) => fresh.includes(endedBy(action, now) ?? "");
  return { actions: actions.filter((action) => !isHeld(action)), heldBack: fresh };
}

/** A row whose time is still to come ends nothing yet: it only stands in the way of a second instance. */
function endedBy(action: SweepAction, now: number): string | undefined {
  if (action.do === "reopen") return action.lease.instanceId;
  return action.do === "record" && action.at <= now ? action.found.ref.instanceId : undefined;
}

function isInstance(found: Found): found is FoundInstance {
  return found.kind === "instance";
}
