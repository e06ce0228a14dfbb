// 32 of them, so that a random byte maps to one without a bias; without the letters that look like digits.
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * An id for a command, a process or a turn that may have to be sent twice: the time in base 36, so that ids sort and
 * tell their age, and 80 random bits. Its form differs from the ids that a keeper makes for callers who give none:
 * those it takes for its own, and never for a new one.
 */
export function makeId(
  kind: "cmd" | "proc" | "ses" | "term" | "turn" | "upl",
  now: number = Date.now(),
): string {
  let random = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) random += ALPHABET[byte % ALPHABET.length];
  return `${kind}_${now.toString(36).padStart(9, "0")}_${random}`;
}
