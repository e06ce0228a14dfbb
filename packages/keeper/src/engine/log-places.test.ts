import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  encodeFrame,
  FRAME_HEADER_BYTES,
  FrameDecoder,
  frameKind,
  writeFrameHeader,
} from "@holdfast/protocol";
import { logPlaces } from "./log-places.ts";
import { LogReader, type LogSource } from "./log-reader.ts";
import { LogWriter, SEGMENT_BYTES, SEGMENTS } from "./log-writer.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "holdfast-places-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Every byte says where it is. Frames of many sizes, from lines to floods, of both streams. */
function written(bytes: number): LogWriter {
  const log = new LogWriter({ dir: join(dir, "logs"), id: "a" });
  const content = Uint8Array.from({ length: 1024 * 1024 + 1000 }, (_, i) => (i * 2_654_435_761) >>> 24);
  for (let i = 0, at = 0; at < bytes; i++) {
    const length = [70, 4096, 1, 65_536, 300_000][i % 5] ?? 1;
    const from = at % (1024 * 1024 - 300_000);
    log.write(i % 3 === 0 ? "stderr" : "stdout", content.subarray(from, from + length));
    at += length;
  }
  log.close();
  return log;
}

/** The same files under another name, of which nothing is known: they are looked through from the beginning. */
function unknown(log: LogWriter): LogSource {
  const copy = join(dir, `copy-${crypto.randomUUID()}`);
  cpSync(log.dir, copy, { recursive: true });
  return { id: log.id, dir: copy, starts: [...log.starts], range: log.range };
}

/** The frames that begin in the next `bytes`, each with its place, stream and content, and what is missing there. */
function read(log: LogSource, since: number, bytes = 100_000): string[] {
  const reader = new LogReader(log, since);
  const decoder = new FrameDecoder();
  const seen: string[] = [];
  for (let piece = reader.next(); piece !== undefined; piece = reader.next()) {
    if (piece.type === "truncated") seen.push(`${piece.from}-${piece.to} is missing`);
    else
      for (const event of decoder.push(piece.bytes))
        if ("bytes" in event && event.offset < since + bytes)
          seen.push(`${event.offset} ${event.type} ${Bun.hash(event.bytes)}`);
    if (reader.offset > since + bytes) break;
  }
  reader.close();
  return seen;
}

/** Around every segment's border, every known place, and some in between. */
function offsetsOf(log: LogWriter): number[] {
  const { firstOffset, nextOffset } = log.range;
  const borders = [...log.starts, firstOffset, nextOffset];
  const between = Array.from(
    { length: 60 },
    (_, i) => firstOffset + Math.floor((i * 7_919_999) % (nextOffset - firstOffset)),
  );
  const known = log.starts.flatMap((start) => {
    const place = logPlaces.find(join(log.dir, `a.${start}`), start + SEGMENT_BYTES / 2);
    return place === undefined ? [] : [place.offset];
  });
  expect(known.length).toBeGreaterThan(0);
  return [...borders, ...known]
    .flatMap((at) => [at - 1, at, at + 1])
    .concat(between)
    .filter((at) => at >= 0);
}

test("an offset is found by a known place as it is by looking through all of its segment", () => {
  const log = written((SEGMENTS + 3) * SEGMENT_BYTES);
  const scanned = unknown(log);
  for (const since of offsetsOf(log)) {
    for (const start of scanned.starts) logPlaces.forget(join(scanned.dir, `a.${start}`));
    expect(read(log, since)).toEqual(read(scanned, since));
  }
});

test("what was found once is known: also in a log that somebody else wrote", () => {
  const log = unknown(written(SEGMENT_BYTES));
  const path = join(log.dir, "a.0");
  expect(logPlaces.find(path, SEGMENT_BYTES)).toBeUndefined();
  const first = read(log, 5_000_000);
  expect(logPlaces.find(path, 5_000_000)?.offset).toBeGreaterThan(4_000_000);
  expect(read(log, 5_000_000)).toEqual(first);
});

test("a place is looked for near an offset only, and not in what comes before it", () => {
  const log = written(SEGMENT_BYTES);
  const before = read(log, 6_000_000);
  overwrite(join(log.dir, "a.0"), { bytes: new Uint8Array(4_000_000), at: 0 });
  expect(read(log, 6_000_000)).toEqual(before);
  expect(read(log, 0)[0]).toBe(`0-${log.starts[1] ?? log.range.nextOffset} is missing`);
});

test.each([
  ["is torn before it", (path: string, at: number) => truncateSync(path, at - 100)],
  ["is torn in its header", (path: string, at: number) => truncateSync(path, at + 5)],
  ["is torn in its payload", (path: string, at: number) => truncateSync(path, at + FRAME_HEADER_BYTES)],
  ["has nothing in it", (path: string) => writeFileSync(path, "")],
  ["has another frame there", (path: string, at: number) => forge(path, at, { offset: 17 })],
  ["has what looks like a frame there", beginAnew],
  ["has a frame there that is too long", (path: string, at: number) => forge(path, at, { length: 2 ** 31 })],
  [
    "has a frame there that ends after the log",
    (path: string, at: number) => forge(path, at, { offset: 2 ** 50 }),
  ],
])("a segment that %s is read as if no place were known", (_, damage) => {
  const log = written(2 * SEGMENT_BYTES);
  const path = join(log.dir, "a.0");
  const place = logPlaces.find(path, 4_000_000);
  if (place === undefined) throw new Error("no place is known");
  damage(path, place.at);
  const scanned = unknown(log);
  for (const since of [place.offset - 1, place.offset, place.offset + 1, 4_000_000])
    expect(read(log, since, SEGMENT_BYTES)).toEqual(read(scanned, since, SEGMENT_BYTES));
});

test("a segment that is begun anew, or dropped, has no places", () => {
  const first = written(SEGMENT_BYTES);
  const path = join(first.dir, "a.0");
  expect(logPlaces.find(path, SEGMENT_BYTES)).toBeDefined();
  const again = new LogWriter({ dir: first.dir, id: "a" });
  again.write("stdout", Buffer.from("x"));
  expect(logPlaces.find(path, SEGMENT_BYTES)).toBeUndefined();
  again.close();
  const log = written((SEGMENTS + 2) * SEGMENT_BYTES);
  expect(log.starts[0]).toBeGreaterThan(0);
  expect(logPlaces.find(path, SEGMENT_BYTES)).toBeUndefined();
});

function forge(path: string, at: number, frame: { offset?: number; length?: number }): void {
  const header = new Uint8Array(FRAME_HEADER_BYTES);
  writeFrameHeader(header, { kind: frameKind.stdout, length: 10, offset: 0, ...frame });
  overwrite(path, { bytes: header, at });
}

/** Other frames, of which one has bytes in it that could be a frame, of 1,000 bytes further on. */
function beginAnew(path: string, at: number): void {
  const frames = [0, 1, 2, 3, 4, 5].map((i) => {
    const bytes = new Uint8Array(1_000_000).fill(i);
    return encodeFrame({ type: "stdout", offset: i * bytes.length, bytes });
  });
  writeFileSync(path, Buffer.concat(frames));
  forge(path, at, { offset: 4_001_000 });
}

function overwrite(path: string, { bytes, at }: { bytes: Uint8Array; at: number }): void {
  const fd = openSync(path, "r+");
  writeSync(fd, bytes, 0, bytes.length, at);
  closeSync(fd);
}
