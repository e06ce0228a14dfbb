import type { CopyOptions, FoundSnapshot, SandboxRef, SnapshotRef, SnapshotVault } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Faults } from "../faults.ts";
import type { Rng } from "../rng.ts";
import type { Actor } from "../scheduler.ts";
import type { Wire } from "../wire.ts";
import type { Backend } from "./backend.ts";

/** Something half copied; its lock ends with its maker. */
export interface SimDraft {
  readonly maker: Actor;
  readonly epoch: number;
}

/** A copy of a disk: what is known of it, and what was done before it was made. */
export interface SimSnapshot extends FoundSnapshot {
  readonly log: readonly string[];
}

export interface VaultWitness {
  /** Copies are in the data dir: a host that rests need not be spared. */
  tended(kind: string, op: string): void;
  snapshotRemoved(ref: SnapshotRef): void;
}

interface Options {
  readonly backend: Backend;
  readonly actor: Actor;
  readonly wire: Wire;
  readonly faults: Faults;
  readonly rng: Rng;
  readonly witness: VaultWitness;
  readonly isCutOff: () => boolean;
}

/** One server's line to the copies of a backend's disks. To copy takes its time; who dies in it leaves a draft. */
export function vaultPort(options: Options): SnapshotVault {
  const { backend, actor, wire, faults, rng, witness, isCutOff } = options;
  const { kept, drafts } = backend;
  const send = <T>(op: string, signal: AbortSignal, work: () => T, afterMs = 0): Promise<T> => {
    witness.tended(backend.kind, op);
    const fate = { request: { afterMs: afterMs + rng.between(0, 20) }, reply: { afterMs: 0 } };
    const apply = () => {
      if (isCutOff() || !backend.isReachable)
        throw new HoldfastError("provider_unavailable", `${backend.kind} cannot be reached`);
      return work();
    };
    return wire.send({ actor, op: `${actor.name} vault ${op}`, fate, apply, signal, lingers: false });
  };
  const copy = async (
    ref: SnapshotRef,
    of: SandboxRef,
    note: FoundSnapshot["note"],
    { signal }: CopyOptions,
  ) => {
    const id = ref.snapshotId;
    const { epoch } = actor;
    const log = await send(`begins ${id}`, signal, () => {
      const disk = backend.disks.get(of.sandboxId);
      if (disk === undefined) throw new HoldfastError("wrong_state", "there is no disk");
      drafts.set(id, { maker: actor, epoch });
      return [...disk.log];
    });
    try {
      return await send(
        `finishes ${id}`,
        signal,
        () => {
          if (faults.strikes("copy_fails")) throw new HoldfastError("internal", "no space left");
          const content = {
            parts: [{ name: "workspace", files: log.length, sizeBytes: 1 }],
            checksum: "sha256:0",
          };
          kept.set(id, { ref, note, content, log });
          return content;
        },
        rng.pick([10, 1_000, 60_000]),
      );
    } finally {
      // Only one that lives comes here, as with any code after a kill.
      drafts.delete(id);
    }
  };
  return {
    make: async (ref, of, note, copying) => kept.get(ref.snapshotId)?.content ?? copy(ref, of, note, copying),
    remove: (ref, signal) =>
      send(`removes ${ref.snapshotId}`, signal, () => {
        if (kept.delete(ref.snapshotId)) witness.snapshotRemoved(ref);
        return { state: "absent", detail: "removed" } as const;
      }),
    discover: (signal) => send("discover", signal, () => [...kept.values()]),
    removeDrafts: (signal) =>
      send("removeDrafts", signal, () => {
        for (const [id, { maker, epoch }] of drafts) if (maker.epoch !== epoch) drafts.delete(id);
      }),
    export: () => Promise.reject(new HoldfastError("unsupported", "not simulated")),
    import: () => Promise.reject(new HoldfastError("unsupported", "not simulated")),
  };
}
