/**
 * Ids that we make ourselves (the SDK for a command or process it may have to send twice, the keeper where the caller
 * gave none) carry the time they were made: an id whose record has been dropped can then be recognised as too old,
 * and answered `record_expired`, without remembering it. Ids that callers choose carry nothing.
 *
 *   cmd_0mi1r5v4k_8f3k2j9x1q7w5e4r   kind, milliseconds since 1970 in base 36 (9 digits), 80 random bits
 */
export type IdKind = "cmd" | "proc";

const MADE_ID = /^(?:cmd|proc)_([0-9a-z]{9})_[0-9a-z]{16}$/;
const TIME_DIGITS = 9;
// 32 of them, so that a random byte maps to one without a bias; without the letters that look like digits.
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

export function makeId(kind: IdKind, now: number = Date.now()): string {
  const time = now.toString(36).padStart(TIME_DIGITS, "0");
  const random = crypto.getRandomValues(new Uint8Array(16));
  let tail = "";
  for (const byte of random) tail += ALPHABET[byte % ALPHABET.length];
  return `${kind}_${time}_${tail}`;
}

/** When an id was made, if it is one of ours; `undefined` for an id that a caller chose. */
export function timeOfId(id: string): number | undefined {
  const time = MADE_ID.exec(id)?.[1];
  return time === undefined ? undefined : Number.parseInt(time, 36);
}
