/**
 * What a frame on disk says of its payload, in 24 bits: enough to tell the bytes that were written from half of them,
 * which a keeper that is killed leaves, and from older ones in their place. It is no protection against the work,
 * which can write both. 0 stands for none.
 */
export function payloadCheck(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((crc, piece) => Bun.hash.crc32(piece, crc), 0) & 0xffffff;
}
