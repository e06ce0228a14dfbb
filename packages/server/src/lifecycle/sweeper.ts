import {
  type Change,
  type Clock,
  type Found,
  type FoundDisk,
  type FoundInstance,
  type Lease,
  type Ledger,
  type Provider,
  planSweep,
  type Store,
  type SweepAction,
  type SweepPlan,
} from "@holdfast/core";
import type { SweepReport } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import { within } from "./deadline.ts";
import { isUnreachable, messageOf, providerOf } from "./effects.ts";
import { foundLease, hunted, recoveredSandbox } from "./found-rows.ts";
import type { Hosts } from "./hosts.ts";
import type { Keepers } from "./keepers.ts";
import { type ProviderReport, reportOf } from "./sweep-report.ts";

const LIST_MS = 30_000;
const DISK_CALL_MS = 40_000;

/** What one pass leaves for the next. */
interface SweepMemory {
  readonly firstSeen: Record<string, number>;
  readonly heldBack: readonly string[];
}

export interface SweeperDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly keepers: Keepers;
  readonly hosts: Hosts;
  readonly clock: Clock;
  readonly log: Log;
  readonly kick: (sandboxId: string) => void;
}

/** Looks at backends from their side: adopts what is ours, and finds owners for what has none. */
export class Sweeper {
  readonly #deps: SweeperDeps;
  readonly #listed = new Set<string>();

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
  }

  /** What is there was listed, and the rows know of it: before that, a generation that exists could be handed out again. */
  hasListed(provider: string): boolean {
    return this.#listed.has(provider);
  }

  nextProbeAt(provider: string): number | null {
    return this.#deps.hosts.get(provider).nextProbeAt;
  }

  /** One pass under the job's ticket. A list that cannot be had changes nothing. */
  async periodic(provider: string, memory: Record<string, unknown>): Promise<Record<string, unknown>> {
    const { log } = this.#deps;
    const before = memoryOf(memory);
    try {
      const { plan, report } = await this.#pass(provider, { dryRun: false, memory: before });
      if (report.actions.length > 0 || report.braked !== undefined) log.warn("sweep", { ...report });
      return { firstSeen: plan.firstSeen, heldBack: plan.heldBack };
    } catch (error) {
      log.warn("sweep could not look", { provider, error: messageOf(error) });
      return { ...before };
    }
  }

  /** The look that everything else waits for when a server starts. */
  async first(): Promise<void> {
    for (const provider of this.#deps.providers.keys()) await this.periodic(provider, {});
  }

  /** One pass because there is no room. */
  async clear(provider: string): Promise<void> {
    await this.periodic(provider, {});
  }

  /** One pass because somebody asked for it. */
  async sweep({ dryRun }: { dryRun: boolean }): Promise<SweepReport> {
    const reports: ProviderReport[] = [];
    for (const provider of this.#deps.providers.keys()) reports.push(await this.#reported(provider, dryRun));
    return { dryRun, providers: reports };
  }

  async #reported(provider: string, dryRun: boolean): Promise<ProviderReport> {
    try {
      return (await this.#pass(provider, { dryRun, memory: memoryOf({}) })).report;
    } catch (error) {
      const found = { instances: 0, disks: 0 };
      return { provider, found, adopted: 0, actions: [], foreign: 0, error: messageOf(error) };
    }
  }

  async #pass(
    provider: string,
    { dryRun, memory }: { dryRun: boolean; memory: SweepMemory },
  ): Promise<{ plan: SweepPlan; report: ProviderReport }> {
    const { store } = this.#deps;
    const listedAt = await store.now();
    const found = await this.#list(provider);
    // After the list: a row is written before its instance exists, so what was listed without one has none.
    const leases = await store.leasesOf(provider);
    const ids = [...new Set(found.map(({ ref }) => ref.sandboxId))];
    const plan = planSweep({
      installationId: await store.installationId(),
      now: await store.now(),
      listedAt,
      found,
      leases,
      sandboxes: await store.sandboxesAmong(ids),
      tombstones: await store.tombstonesAmong(ids),
      ...memory,
    });
    if (!dryRun && (await this.#carryOut(provider, plan, leases))) this.#listed.add(provider);
    return { plan, report: reportOf(provider, { found, plan, leases }) };
  }

  async #list(provider: string): Promise<readonly Found[]> {
    const { clock, hosts } = this.#deps;
    try {
      const backend = providerOf({ provider }, this.#deps);
      const found = await within(clock, { ms: LIST_MS }, (signal) => backend.discover(signal));
      await hosts.answered(provider);
      return found;
    } catch (error) {
      if (isUnreachable(error)) await hosts.missed(provider, error);
      throw error;
    }
  }

  /** Whether the rows know of every generation that there is now. */
  async #carryOut(provider: string, plan: SweepPlan, leases: readonly Lease[]): Promise<boolean> {
    let areNumbersKnown = true;
    for (const action of plan.actions) {
      try {
        await this.#act(provider, action);
      } catch (error) {
        if (action.do === "raise" || action.do === "record") areNumbersKnown = false;
        this.#deps.log.error("sweep action failed", { provider, action: action.do, error: messageOf(error) });
      }
    }
    // Whoever sweeps holds a line to every keeper, so that each knows that it has a server.
    for (const lease of leases) {
      if (lease.phase === "live" && this.#deps.keepers.link(lease.instanceId) === undefined)
        this.#deps.kick(lease.sandboxId);
    }
    return areNumbersKnown;
  }

  #act(provider: string, action: SweepAction): Promise<void> {
    switch (action.do) {
      case "reopen":
        return this.#reopen(action.lease);
      case "record":
        return this.#record(provider, action.found, action);
      case "raise":
        return this.#raise(action);
      case "remove-disk":
        return this.#removeDisk(provider, action.found);
      case "recover-disk":
        return this.#recoverDisk(provider, action);
      case "own-disk":
        return this.#ownDisk(action.found);
      default:
        return action satisfies never;
    }
  }

  async #reopen(lease: Lease): Promise<void> {
    const { store, kick } = this.#deps;
    const ledger = await this.#ledger(lease.sandboxId);
    if (isCovered(ledger, lease)) return;
    const found = hunted(lease, { ledger, because: "ghost", at: ledger.readAt });
    const detail = { generation: lease.generation, believed: lease.evidence };
    await store.save(ledger, { found, entries: [{ type: "ghost_found", cause: "ghost", detail }] });
    kick(lease.sandboxId);
  }

  async #record(
    provider: string,
    found: FoundInstance,
    { because, at }: { because: string; at: number },
  ): Promise<void> {
    const { store, kick } = this.#deps;
    const { sandboxId, generation } = found.ref;
    const ledger = await this.#ledger(sandboxId);
    if (isCovered(ledger, found.ref)) return;
    const row = hunted(foundLease(provider, found, ledger.readAt), { ledger, because: "orphan", at });
    const detail = { generation, because, stopsAt: new Date(at).toISOString() };
    // In one write: with the number alone it would look like one that its sandbox knows nothing of.
    const raised = raisedTo(ledger, { generation, fence: Math.max(found.fence ?? 0, generation) });
    await store.save(ledger, {
      ...raised,
      found: row,
      entries: [...(raised.entries ?? []), { type: "orphan_found", cause: "orphan", detail }],
    });
    kick(sandboxId);
  }

  async #raise({ sandboxId, generation, fence }: Extract<SweepAction, { do: "raise" }>): Promise<void> {
    const ledger = await this.#ledger(sandboxId);
    const change = raisedTo(ledger, { generation, fence });
    if (change.sandbox !== undefined) await this.#deps.store.save(ledger, change);
  }

  async #removeDisk(provider: string, { ref }: FoundDisk): Promise<void> {
    const { clock, log } = this.#deps;
    const backend = providerOf({ provider }, this.#deps);
    const seen = await within(clock, { ms: DISK_CALL_MS }, (signal) => backend.removeDisk(ref, signal));
    log.info("disk of a deleted sandbox removed", { sandbox: ref.sandboxId, state: seen.state });
  }

  async #recoverDisk(
    provider: string,
    { found, generation, fence }: Extract<SweepAction, { do: "recover-disk" }>,
  ): Promise<void> {
    const { store } = this.#deps;
    const { sandboxId } = found.ref;
    const entry = { type: "recovered", cause: "restored_rows", detail: { disk: sandboxId } };
    const made = await store.insertSandbox(recoveredSandbox(provider, sandboxId, await store.now()), {
      entry,
    });
    await store.save(made, { sandbox: { hasDisk: true, generation, fence } });
  }

  async #ownDisk({ ref }: FoundDisk): Promise<void> {
    const ledger = await this.#ledger(ref.sandboxId);
    if (ledger.sandbox !== undefined && !ledger.sandbox.hasDisk)
      await this.#deps.store.save(ledger, { sandbox: { hasDisk: true } });
  }

  /** Also of an id that no row knows yet. */
  async #ledger(sandboxId: string): Promise<Ledger> {
    const { store } = this.#deps;
    const known = await store.ledger(sandboxId);
    if (known !== undefined) return known;
    return {
      sandboxId,
      sandbox: undefined,
      lease: undefined,
      debts: [],
      version: 0,
      readAt: await store.now(),
    };
  }
}

/** Another server, which starts at the same time, has found it, too. */
function isCovered({ lease, debts }: Ledger, { instanceId }: Pick<Lease, "instanceId">): boolean {
  return [lease, ...debts].some((one) => one?.instanceId === instanceId);
}

function memoryOf(memory: Record<string, unknown>): SweepMemory {
  const { firstSeen, heldBack } = memory as Partial<SweepMemory>;
  return { firstSeen: firstSeen ?? {}, heldBack: heldBack ?? [] };
}

/** No later instance may have the number of one that there is. */
function raisedTo({ sandbox }: Ledger, { generation, fence }: Pick<Lease, "generation" | "fence">): Change {
  if (sandbox === undefined || sandbox.generation >= generation) return {};
  const raised = { generation, fence: Math.max(fence, sandbox.fence) };
  return {
    sandbox: raised,
    entries: [{ type: "generation_raised", cause: "restored_rows", detail: raised }],
  };
}
