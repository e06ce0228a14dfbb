import { createHash, randomBytes } from "node:crypto";

/** Long enough to click a link, short enough that one in a terminal's history is worth nothing. */
const LIFETIME_MS = 10 * 60_000;

/** Codes that let a browser in without the token: each once, and not for long. They end with the server. */
export class SignInCodes {
  readonly #now: () => number;
  /** By their hash: who finds one by trying learns nothing from how long it takes. */
  readonly #open = new Map<string, number>();

  constructor({ now = Date.now }: { now?: () => number } = {}) {
    this.#now = now;
  }

  make(): { code: string; expiresAt: string } {
    this.#forget();
    const code = randomBytes(24).toString("base64url");
    const expiresAt = this.#now() + LIFETIME_MS;
    this.#open.set(hashOf(code), expiresAt);
    return { code, expiresAt: new Date(expiresAt).toISOString() };
  }

  /** Whether it was good; it is not any more. */
  take(code: string): boolean {
    this.#forget();
    return this.#open.delete(hashOf(code));
  }

  #forget(): void {
    for (const [hash, expiresAt] of this.#open) if (expiresAt <= this.#now()) this.#open.delete(hash);
  }
}

function hashOf(code: string): string {
  return createHash("sha256").update(code).digest("hex");
}
