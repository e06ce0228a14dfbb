import { CLAIM_FENCE_HEADER } from "@holdfast/protocol/keeper-start";
import type { Claims } from "./claims.ts";
import type { Deadman } from "./deadman.ts";
import type { Gate } from "./gate.ts";
import { kindOf } from "./request-kind.ts";

export interface DoorParts {
  readonly deadman: Pick<Deadman, "heard">;
  readonly claims: Claims;
  readonly gate: Gate;
}

/** What every request of a server that was not replaced passes, on its way in and out. */
export class Door {
  readonly #parts: DoorParts;

  constructor(parts: DoorParts) {
    this.#parts = parts;
  }

  /** Throws `claim_lost` or `quiesced`. The returned function says that the request was answered. */
  enter(path: string, request: Request): () => void {
    const { deadman, gate } = this.#parts;
    deadman.heard();
    const kind = kindOf(path, request);
    if (kind === "own" || kind === "look") return () => {};
    this.checkClaim(request.headers.get(CLAIM_FENCE_HEADER));
    return gate.enter({ kind, what: `${request.method} ${new URL(request.url).pathname}` });
  }

  checkClaim(header: string | null): void {
    this.#parts.claims.check(header);
  }
}
