import type { Archive, Clock, KnownSnapshot, Provider, SnapshotRow, Store } from "@holdfast/core";
import { HoldfastError, type ImportQuery } from "@holdfast/protocol";
import type { Log } from "../log.ts";
import { messageOf } from "./effects.ts";
import { BUSY_MS } from "./snapshot-work.ts";
import { type Snapshots, vaultOf } from "./snapshots.ts";

export interface ArchivesDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly snapshots: Snapshots;
  readonly clock: Clock;
  readonly log: Log;
  readonly defaultProvider: string;
}

/** Snapshots as archives, which any provider can have made and any can take. */
export class SnapshotArchives {
  readonly #deps: ArchivesDeps;

  constructor(deps: ArchivesDeps) {
    this.#deps = deps;
  }

  /** The snapshot stays until the archive was read to its end, or cancelled. */
  async export(idOrName: string, signal: AbortSignal): Promise<{ row: KnownSnapshot; archive: Archive }> {
    const { store, snapshots } = this.#deps;
    const row = await snapshots.get(idOrName);
    if (row.phase !== "ready") throw notReady(row);
    const over = new AbortController();
    const end = snapshots.hold(row.id);
    const release = (): void => {
      over.abort();
      end();
    };
    try {
      await this.#keep(row.id, over.signal);
      const ref = { installationId: await store.installationId(), snapshotId: row.id };
      const archive = await vaultOf(row.provider, this.#deps).export(ref, signal);
      return { row, archive: withEnd(archive, release) };
    } catch (error) {
      release();
      throw error;
    }
  }

  async import(archive: Archive, query: ImportQuery): Promise<KnownSnapshot> {
    const { snapshots, defaultProvider } = this.#deps;
    const { provider = defaultProvider, name, expiresInSeconds } = query;
    const wanted = {
      ...{ provider, sandboxId: "", generation: 0, spec: {} },
      ...(name !== undefined && { name }),
      ...(expiresInSeconds !== undefined && { expiresInSeconds }),
    };
    const { id } = await snapshots.make(wanted, { origin: "import" }, (vault, ref, note, options) =>
      vault.import(ref, archive, note, options),
    );
    return snapshots.ready(id);
  }

  /** Tells other servers, as long as it lasts, that somebody reads it. The first time is written when this returns. */
  async #keep(id: string, until: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#deps;
    if (!store.isShared) return;
    await this.#say(id);
    const saying = async () => {
      for (;;) {
        await clock.sleep(BUSY_MS / 3, until);
        if (until.aborted) return;
        await this.#say(id);
      }
    };
    void saying().catch((error: unknown) => {
      log.warn("an export is not known to other servers", { snapshot: id, error: messageOf(error) });
    });
  }

  async #say(id: string): Promise<void> {
    const { store, snapshots } = this.#deps;
    for (;;) {
      const row = await snapshots.get(id);
      const busyUntil = (await store.now()) + BUSY_MS;
      if ((await store.saveSnapshot(row, { busyUntil })) !== undefined) return;
    }
  }
}

/** The same stream; `onEnd` is called once, however it ends. */
function withEnd(archive: Archive, onEnd: () => void): Archive {
  const reader = archive.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        throw error;
      }
    },
    async cancel(reason) {
      onEnd();
      await reader.cancel(reason);
    },
  });
}

function notReady({ name, phase }: SnapshotRow): HoldfastError {
  return new HoldfastError("wrong_state", `snapshot ${name} cannot be exported: it is ${phase}`, {
    hint: "`holdfast snapshot ls` shows which are ready",
    started: "no",
  });
}
