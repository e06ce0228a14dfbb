/**
 * Ids that the keeper makes carry the time they were made. Only the keeper makes such ids, so one that is in no record
 * belonged to a run whose record is gone: it can be told from a new one without being remembered.
 */
const OWN_ID = /^(cmd|proc)-[0-9a-z]{9}-[0-9a-f]{12}$/;

export function makeId(prefix: "cmd" | "proc", now: number): string {
  return `${prefix}-${now.toString(36).padStart(9, "0")}-${randomHex(6)}`;
}

/** The global `crypto`, here and everywhere in the keeper: `node:crypto` takes 1.6 MiB and 2 ms when it is loaded. */
export function randomHex(bytes: number): string {
  return crypto.getRandomValues(Buffer.alloc(bytes)).toString("hex");
}

export function isOwnId(id: string): boolean {
  return OWN_ID.test(id);
}

/** 53 bits of an id, for remembering many: two of 65,536 meet by chance once in four million such sets. */
export function shortHash(id: string): number {
  return Number(Bun.hash.xxHash64(id) & 0x1f_ffff_ffff_ffffn);
}

/**
 * Whether two requests ask for the same work. The bytes of stdin count through their own hash: they may be many.
 * Two spellings of one request (order of keys) are equal.
 */
export function fingerprint(request: Record<string, unknown>): string {
  const text = JSON.stringify(request, (key, value) => (key === "stdin" ? digestOf(value) : inOrder(value)));
  return Bun.SHA256.hash(text, "base64").slice(0, 22);
}

function digestOf(stdin: unknown): unknown {
  if (stdin === undefined) return undefined;
  const [kind, text] = typeof stdin === "string" ? ["text", stdin] : ["bytes", JSON.stringify(stdin)];
  return [kind, text.length, Bun.hash.xxHash64(text).toString(36)];
}

function inOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
