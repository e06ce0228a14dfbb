import type { Turn as TurnInfo } from "@holdfast/protocol";
import { meansEnded } from "./failures.ts";
import { makeId } from "./ids.ts";
import type { Scope, Waiting } from "./scope.ts";

/** Which turn. */
export interface BeginTurnOptions {
  /** The same id again gives the turn that is open under it. Default: one that the SDK makes. */
  turnId?: string | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * One unit of an agent's use. While it is open, nothing reaps the sandbox; when the last open one ends, a sandbox with
 * `persistent: false` is removed. A turn whose client died ends by itself after `turnTimeoutSeconds` without a call.
 *
 * @example
 * ```ts
 * await using turn = await sbx.beginTurn();
 * await sbx.exec("make");          // carries the turn, which renews it
 * ```
 */
export class Turn implements AsyncDisposable {
  readonly turnId: string;
  readonly startedAt: string;
  readonly #scope: Scope;
  readonly #onEnd: (turn: Turn) => void;

  /** @internal */
  constructor({ scope, info, onEnd }: { scope: Scope; info: TurnInfo; onEnd: (turn: Turn) => void }) {
    this.turnId = info.turnId;
    this.startedAt = info.startedAt;
    this.#scope = scope;
    this.#onEnd = onEnd;
  }

  /**
   * Ends it. A turn that has ended stays ended: ending it again changes nothing.
   *
   * @example
   * ```ts
   * await turn.end();
   * ```
   */
  async end(options: Waiting = {}): Promise<void> {
    try {
      await endTurn(this.#scope, this.turnId, options.signal);
    } catch (error) {
      // With its sandbox, it is over, too.
      if (!meansEnded(error)) throw error;
    }
    this.#onEnd(this);
  }

  /** `await using` ends it. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }
}

export async function beginTurn(scope: Scope, options: BeginTurnOptions): Promise<TurnInfo> {
  const { turnId = makeId("turn"), signal } = options;
  const path = `${scope.path}/turns`;
  const call = { method: "POST", path, json: { turnId }, again: "safe", signal } as const;
  return (await scope.client.json<TurnInfo>(call)).body;
}

export async function endTurn(scope: Scope, turnId: string, signal?: AbortSignal): Promise<TurnInfo> {
  const path = `${scope.path}/turns/${encodeURIComponent(turnId)}/end`;
  return (await scope.client.json<TurnInfo>({ method: "POST", path, again: "safe", signal })).body;
}
