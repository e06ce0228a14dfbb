import { LogWriter, SEGMENT_BYTES, SEGMENTS } from "./log-writer.ts";

// A prime, so that the content of a segment is never that of the one whose place it takes.
const PERIOD = 1_048_573;
const MAX_BYTES = 1024 * 1024;
const pattern = Uint8Array.from(
  { length: PERIOD + MAX_BYTES },
  (_, i) => ((i % PERIOD) * 2_654_435_761) >>> 24,
);

/** The bytes of a log in which every one says where it is. */
export function bytesAt(offset: number, length: number): Uint8Array {
  return pattern.subarray(offset % PERIOD, (offset % PERIOD) + length);
}

/** As a program: floods a log until it is killed, and says when its ring is full. */
if (import.meta.main) {
  const log = new LogWriter({ dir: process.argv[2] ?? "", id: "a" });
  let isFull = false;
  for (let i = 0; ; i++) {
    log.write("stdout", bytesAt(log.range.nextOffset, [262_144, 99_991, 262_144][i % 3] ?? 1));
    if (isFull || log.range.nextOffset < SEGMENTS * SEGMENT_BYTES) continue;
    isFull = true;
    process.stdout.write("full\n");
  }
}
