import type { Claim as ClaimInfo, ClaimRequest } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { meansEnded } from "./failures.ts";
import type { Scope, Waiting } from "./scope.ts";

/** Who claims it, and for how long at a time. */
export interface ClaimOptions extends ClaimRequest {
  signal?: AbortSignal | undefined;
}

const DEFAULT_TTL_SECONDS = 60;
// Two renewals may fail before it ends.
const RENEWALS_PER_TTL = 3;

/**
 * A sandbox for oneself alone: calls of others are refused with `claim_held`. It is renewed by itself while this
 * process lives. The handle it came from sends its token with every call; once it is lost, those are refused with
 * `claim_lost`, until `release` says that they need it no more.
 *
 * @example
 * ```ts
 * await using claim = await sbx.claim({ holder: "worker-7" });
 * await sbx.exec("make deploy", { signal: claim.lost });
 * ```
 */
export class Claim implements AsyncDisposable {
  readonly claimId: string;
  readonly holder: string;
  /** Grows with every claim of this sandbox: whoever writes elsewhere on its behalf can be fenced by it, too. */
  readonly fence: number;
  readonly token: string;
  /** Aborts when somebody else took it over, or when it could not be renewed in time. */
  readonly lost: AbortSignal;
  readonly #lost = new AbortController();
  readonly #scope: Scope;
  readonly #ttlSeconds: number;
  readonly #onRelease: (claim: Claim) => void;
  /** By our own clock: the server's may be another. */
  #goodUntil: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @internal */
  constructor(of: { scope: Scope; made: MadeClaim; onRelease: (claim: Claim) => void }) {
    const { claimId, holder, fence, token } = of.made.info;
    this.claimId = claimId;
    this.holder = holder;
    this.fence = fence;
    this.token = token;
    this.lost = this.#lost.signal;
    this.#scope = of.scope;
    this.#ttlSeconds = of.made.ttlSeconds;
    this.#onRelease = of.onRelease;
    this.#goodUntil = of.made.askedAt + this.#ttlSeconds * 1000;
    this.#renewLater();
  }

  /**
   * Gives it back. Giving back what was lost, or given back, changes nothing.
   *
   * @example
   * ```ts
   * await claim.release();
   * ```
   */
  async release(options: Waiting = {}): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { client } = this.#scope;
    const headers = { "Holdfast-Claim": this.token };
    const call = { method: "DELETE", path: this.#path(), headers, again: "safe", ...options } as const;
    await client.json(call).catch(unlessOver);
    this.#onRelease(this);
  }

  /** `await using` gives it back. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  #renewLater(): void {
    this.#timer = setTimeout(() => void this.#renew(), (this.#ttlSeconds * 1000) / RENEWALS_PER_TTL);
    // A claim is no reason for a program to live on. Browsers have numbers here, which hold nothing.
    if (typeof this.#timer === "object") this.#timer.unref();
  }

  async #renew(): Promise<void> {
    const timer = this.#timer;
    const askedAt = Date.now();
    try {
      const json = { ttlSeconds: this.#ttlSeconds };
      const headers = { "Holdfast-Claim": this.token };
      const path = `${this.#path()}/renew`;
      // Past its end there is nothing left to renew, and whoever works under it must know at once.
      const signal = AbortSignal.timeout(Math.max(0, this.#goodUntil - askedAt));
      await this.#scope.client.json({ method: "POST", path, json, headers, again: "safe", signal });
      this.#goodUntil = askedAt + this.#ttlSeconds * 1000;
    } catch (error) {
      if (isOver(error)) return this.#lost.abort(error);
      if (Date.now() >= this.#goodUntil) return this.#lost.abort(notRenewed(this.claimId, error));
    }
    // Unless it was released meanwhile.
    if (timer === this.#timer) this.#renewLater();
  }

  #path(): string {
    return `${this.#scope.path}/claims/${encodeURIComponent(this.claimId)}`;
  }
}

export interface MadeClaim {
  info: ClaimInfo & { token: string };
  ttlSeconds: number;
  askedAt: number;
}

export async function makeClaim(scope: Scope, options: ClaimOptions): Promise<MadeClaim> {
  const { signal, ttlSeconds = DEFAULT_TTL_SECONDS, ...request } = options;
  const askedAt = Date.now();
  const json = { ...request, ttlSeconds };
  // Not repeated: a claim whose answer was lost has a token that nobody knows, and ends by itself.
  const call = { method: "POST", path: `${scope.path}/claims`, json, again: "never", signal } as const;
  const { token, ...info } = (await scope.client.json<ClaimInfo>(call)).body;
  if (token === undefined)
    throw new HoldfastError("internal", "the server made a claim without a token", { started: "yes" });
  return { info: { ...info, token }, ttlSeconds, askedAt };
}

function isOver(error: unknown): boolean {
  return (error instanceof HoldfastError && error.code === "claim_lost") || meansEnded(error);
}

function unlessOver(error: unknown): void {
  if (!isOver(error)) throw error;
}

function notRenewed(claimId: string, cause: unknown): HoldfastError {
  return new HoldfastError("claim_lost", `claim ${claimId} could not be renewed in time`, {
    cause,
    hint: "Somebody else may have the sandbox now: look at its state before you go on, then claim it again.",
  });
}
