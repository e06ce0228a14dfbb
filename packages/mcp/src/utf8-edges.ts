/** Where text may end: before a character of which the rest is missing. Bytes that are no UTF-8 anyway stay. */
export function wholeEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte >= 0xc0) return lengthOf(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Where text may begin: after the rest of a character whose beginning is missing. */
export function wholeStart(bytes: Uint8Array): number {
  let at = 0;
  while (at < 3 && at < bytes.length && isRest(bytes[at] ?? 0)) at++;
  return at;
}

function lengthOf(first: number): number {
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

function isRest(byte: number): boolean {
  return byte >= 0x80 && byte < 0xc0;
}
