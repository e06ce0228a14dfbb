import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const COOKIE = "holdfast-session";
/** A working week and its weekend. Each visit of the page begins it anew. */
const LIFETIME_MS = 7 * 86_400_000;

/**
 * A browser's session, as a cookie that scripts cannot read. It is signed with a key made of the server's token and is
 * kept nowhere: it survives a restart, and ends with its time, with the sign-out, and with the token.
 */
export class Sessions {
  readonly #token: () => string;
  readonly #now: () => number;

  constructor(deps: { token: () => string; now?: () => number }) {
    this.#token = deps.token;
    this.#now = deps.now ?? Date.now;
  }

  /** The header that makes a browser keep a new session. */
  begin({ secure }: { secure: boolean }): string {
    const claims = `${this.#now() + LIFETIME_MS}.${randomBytes(16).toString("base64url")}`;
    return cookie(`${claims}.${this.#sign(claims)}`, { secure, maxAgeSeconds: LIFETIME_MS / 1000 });
  }

  /** The header that makes a browser forget it. */
  end({ secure }: { secure: boolean }): string {
    return cookie("", { secure, maxAgeSeconds: 0 });
  }

  /** Whether the request carries a session of ours that is not over. */
  has(headers: Headers): boolean {
    return valuesOf(headers.get("cookie") ?? "").some((value) => this.#isGood(value));
  }

  #isGood(value: string): boolean {
    const [expiresAt = "", nonce = "", signature = "", ...rest] = value.split(".");
    if (rest.length > 0 || !/^\d{1,15}$/.test(expiresAt)) return false;
    const isOurs = isSame(signature, this.#sign(`${expiresAt}.${nonce}`));
    return isOurs && Number(expiresAt) > this.#now();
  }

  #sign(claims: string): string {
    const key = createHmac("sha256", this.#token()).update("holdfast dashboard session").digest();
    return createHmac("sha256", key).update(claims).digest("base64url");
  }
}

function cookie(
  value: string,
  { secure, maxAgeSeconds }: { secure: boolean; maxAgeSeconds: number },
): string {
  const parts = [`${COOKIE}=${value}`, "Path=/", "HttpOnly", "SameSite=Strict", `Max-Age=${maxAgeSeconds}`];
  return [...parts, ...(secure ? ["Secure"] : [])].join("; ");
}

/** All of that name: a browser may have one for another path, too. */
function valuesOf(header: string): string[] {
  return header
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1));
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
