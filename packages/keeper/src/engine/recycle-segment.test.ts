import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FrameDecoder } from "@holdfast/protocol";
import { listLogs } from "./log-files.ts";
import { endOfLog, LogReader, type LogSource } from "./log-reader.ts";
import { LogWriter, SEGMENT_BYTES, SEGMENTS } from "./log-writer.ts";
import { bytesAt } from "./test-flood.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "holdfast-recycle-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const RING_BYTES = SEGMENTS * SEGMENT_BYTES;

/** So much of a log whose every byte says where it is, in frames of many sizes. */
function flood(log: LogWriter, bytes: number): void {
  for (let i = 0, left = bytes; left > 0; i++) {
    const length = Math.min(left, [262_144, 70_001, 13, 262_144, 5_000][i % 5] ?? 1);
    log.write(i % 3 === 0 ? "stderr" : "stdout", bytesAt(log.range.nextOffset, length));
    left -= length;
  }
}

/** Reads on from an offset to the end, and says what is missing; every other byte must be the one of its place. */
function gapsFrom(log: LogSource, since: number): string[] {
  const reader = new LogReader(log, since);
  const decoder = new FrameDecoder();
  const gaps: string[] = [];
  let at = since;
  for (let piece = reader.next(); piece !== undefined; piece = reader.next()) {
    if (piece.type === "truncated") {
      gaps.push(`${piece.from}-${piece.to}`);
      at = piece.to;
      continue;
    }
    for (const event of decoder.push(piece.bytes)) {
      if (!("bytes" in event)) throw new Error(`${event.type} in a log`);
      if (event.offset !== at) throw new Error(`${event.offset} where ${at} should be`);
      if (Buffer.compare(event.bytes, bytesAt(at, event.bytes.length)) !== 0)
        throw new Error(`wrong bytes at ${at}`);
      at += event.bytes.length;
    }
  }
  reader.close();
  expect(at).toBe(log.range.nextOffset);
  return gaps;
}

const inodeOf = (path: string) => statSync(path, { bigint: true }).ino;
const pathOf = (log: LogWriter, index: number) => join(log.dir, `a.${log.starts.at(index)}`);

test("the oldest segment becomes the newest, and only what is new in it is read", () => {
  const log = new LogWriter({ dir, id: "a" });
  flood(log, RING_BYTES - SEGMENT_BYTES / 2);
  const oldest = inodeOf(pathOf(log, 0));
  while (log.starts[0] === 0) flood(log, 300_000);
  expect(inodeOf(pathOf(log, -1))).toBe(oldest);
  expect(statSync(pathOf(log, -1)).size).toBeGreaterThan(SEGMENT_BYTES - 300_000); // the old frames are still there
  for (let i = 0; i < 20; i++) {
    flood(log, 3_234_567);
    for (const start of log.starts) expect(gapsFrom(log, start)).toEqual([]);
    expect(gapsFrom(log, 0)).toEqual([`0-${log.range.firstOffset}`]);
  }
  expect(log.range.nextOffset).toBeGreaterThan(1.5 * RING_BYTES);
  log.close();
  expect(gapsFrom(log, log.range.firstOffset + 5)).toEqual([]);
  expect(endOfLog({ dir, id: "a", starts: log.starts })).toBe(log.range.nextOffset);
});

test("a segment that is read is left alone until it is not read any more", () => {
  const log = new LogWriter({ dir, id: "a" });
  flood(log, RING_BYTES - SEGMENT_BYTES);
  const readers = [new LogReader(log, 0), new LogReader(log, 0)];
  for (const reader of readers) reader.next();
  const oldest = inodeOf(pathOf(log, 0));
  readers[0]?.close();
  while (log.starts[0] === 0) flood(log, 300_000);
  expect(inodeOf(pathOf(log, -1))).not.toBe(oldest);
  readers[1]?.close();
  readers[1]?.close();
  const next = inodeOf(pathOf(log, 0));
  const [, , third] = log.starts;
  while (log.starts[1] !== third) flood(log, 300_000);
  expect(inodeOf(pathOf(log, -1))).toBe(next);
  log.close();
});

test.each([
  ["nothing", () => {}],
  ["a link", (path: string) => symlinkSync(join(dir, "precious"), path)],
  ["another name of a file", (path: string) => linkSync(join(dir, "precious"), path)],
  ["a pipe", (path: string) => void Bun.spawnSync(["mkfifo", path])],
  ["a directory", (path: string) => mkdirSync(path)],
])("where the oldest segment was is %s: that is not written to", (_, put) => {
  writeFileSync(join(dir, "precious"), "precious");
  const log = new LogWriter({ dir: join(dir, "logs"), id: "a" });
  flood(log, RING_BYTES - SEGMENT_BYTES / 2);
  rmSync(pathOf(log, 0));
  put(pathOf(log, 0));
  while (log.range.nextOffset < RING_BYTES + SEGMENT_BYTES) flood(log, 300_000);
  expect(readFileSync(join(dir, "precious"), "utf8")).toBe("precious");
  expect(gapsFrom(log, log.range.firstOffset)).toEqual([]);
  log.close();
});

/** What a keeper finds that comes after one that was killed. */
function found(): LogSource {
  const starts = listLogs(dir).get("a")?.starts ?? [];
  const nextOffset = endOfLog({ dir, id: "a", starts });
  return { dir, id: "a", starts, range: { firstOffset: starts[0] ?? 0, nextOffset } };
}

test("a keeper that is killed in the middle of a flood leaves whole frames, and nothing old among them", async () => {
  let longest = 0;
  for (let round = 0; round < 12; round++) {
    const flooding = Bun.spawn([process.execPath, join(import.meta.dir, "test-flood.ts"), dir], {
      stdout: "pipe",
    });
    await flooding.stdout.getReader().read(); // the ring is full
    await Bun.sleep(Math.random() * 30);
    flooding.kill("SIGKILL");
    await flooding.exited;
    const log = found();
    expect(log.starts.length).toBeGreaterThanOrEqual(SEGMENTS);
    expect(gapsFrom(log, log.range.firstOffset)).toEqual([]);
    longest = Math.max(longest, log.range.nextOffset);
    rmSync(dir, { recursive: true });
    mkdirSync(dir);
  }
  expect(longest).toBeGreaterThan(RING_BYTES);
});

test("a segment of which a power failure left parts from before is read as far as it is whole", () => {
  const log = new LogWriter({ dir, id: "a" });
  flood(log, RING_BYTES + 3 * SEGMENT_BYTES);
  log.close();
  const path = pathOf(log, -2);
  const bytes = readFileSync(path);
  bytes.set(bytesAt(7, 4096), 4 * 1024 * 1024);
  writeFileSync(path, bytes);
  const gaps = gapsFrom(log, log.range.firstOffset);
  expect(gaps.length).toBe(1);
  const [from, to] = (gaps[0] ?? "").split("-").map(Number);
  expect(to).toBe(log.starts.at(-1) ?? 0);
  expect(from).toBeGreaterThan((log.starts.at(-2) ?? 0) + 3 * 1024 * 1024);
  truncateSync(path, 100);
  expect(gapsFrom(log, log.starts.at(-1) ?? 0)).toEqual([]);
});
