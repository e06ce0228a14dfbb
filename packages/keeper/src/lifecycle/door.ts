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
    return gate.enter({ kind, what: `${request.method} ${pathOf(request.url)}` });
  }

  checkClaim(header: string | null): void {
    this.#parts.claims.check(header);
  }
}

/** By hand: it is only told, and a URL takes as long to make as all the checks together. */
function pathOf(url: string): string {
  const query = url.indexOf("?");
  return url.slice(url.indexOf("/", "http://".length), query < 0 ? undefined : query);
}
