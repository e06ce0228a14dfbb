import {
  type Holding,
  type KeeperControl,
  type RecordedEntry,
  type Store,
  type Turn,
  turnsEnded,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { NewId } from "./new-lease.ts";
import type { Reconciler } from "./reconciler.ts";
import type { Asked } from "./refusals.ts";
import type { Sandboxes } from "./sandboxes.ts";

/** More are a client that forgets to end its turns. */
const MOST_OPEN = 100;

interface TurnsDeps {
  readonly store: Store;
  readonly sandboxes: Pick<Sandboxes<KeeperControl>, "allowed" | "timeline">;
  readonly reconciler: Reconciler;
  readonly newId: NewId;
}

export interface EndedTurn {
  readonly turnId: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Units of an agent's use: an open one holds off the reaper, and the end of the last one removes what is not persistent. */
export class Turns {
  readonly #deps: TurnsDeps;

  constructor(deps: TurnsDeps) {
    this.#deps = deps;
  }

  /** The same id again gives the same turn. It wakes nothing. */
  async begin(idOrName: string, asked: Asked): Promise<{ holding: Holding; turn: Turn }> {
    const { store, sandboxes, newId } = this.#deps;
    for (;;) {
      const { turnId = newId("turn"), ...rest } = asked;
      const holding = await sandboxes.allowed(idOrName, rest);
      const { sandbox, readAt } = holding;
      const open = sandbox.turns.find((turn) => turn.turnId === turnId);
      if (open !== undefined) return { holding, turn: open };
      if (sandbox.turns.length >= MOST_OPEN) throw tooMany(sandbox.name);
      const turn = {
        turnId,
        startedAt: readAt,
        expiresAt: readAt + sandbox.policy.turnTimeoutSeconds * 1000,
      };
      const saved = await store.save(holding, {
        sandbox: { turns: [...sandbox.turns, turn], lastUsedAt: readAt },
        entries: [{ type: "turn_started", detail: { turnId } }],
      });
      if (saved !== undefined) return { holding: saved as Holding, turn };
    }
  }

  /** The record of its end and, where that is its sandbox's end, the wish to remove it are one transaction. */
  async end(idOrName: string, turnId: string): Promise<{ holding: Holding | undefined; turn: EndedTurn }> {
    const { store, sandboxes, reconciler } = this.#deps;
    for (;;) {
      const holding = await store.find(idOrName);
      const open = holding?.sandbox.turns.find((turn) => turn.turnId === turnId);
      if (holding === undefined || open === undefined) {
        return { holding, turn: endedBefore(await sandboxes.timeline(idOrName, WHOLE), turnId) };
      }
      const change = turnsEnded(holding, { turnIds: [turnId], cause: "turn_end", now: holding.readAt });
      const saved = await store.save(holding, change);
      if (saved === undefined) continue;
      reconciler.kick(holding.sandboxId);
      return {
        holding: saved as Holding,
        turn: { turnId, startedAt: open.startedAt, endedAt: holding.readAt },
      };
    }
  }
}

function endedBefore(timeline: readonly RecordedEntry[], turnId: string): EndedTurn {
  const ended = timeline.findLast(({ type, detail }) => type === "turn_ended" && detail?.turnId === turnId);
  if (ended === undefined) throw unknownTurn(turnId);
  return { turnId, startedAt: Date.parse(String(ended.detail?.startedAt)), endedAt: ended.at };
}

/** A timeline is trimmed long before this. */
const WHOLE = { since: 0, limit: 100_000 };

function tooMany(name: string): HoldfastError {
  return new HoldfastError("limit_reached", `sandbox ${name} has ${MOST_OPEN} open turns`, {
    hint: "end those that are over (POST /v1/sandboxes/{id}/turns/{turnId}/end)",
    retryable: false,
    started: "no",
  });
}

function unknownTurn(turnId: string): HoldfastError {
  return new HoldfastError("not_found", `there is no turn ${turnId}`, {
    hint: "the sandbox's events list its turns",
    started: "no",
  });
}
