import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeFrame, FrameDecoder, type LogEvent } from "@holdfast/protocol";
import { listLogs } from "./log-files.ts";
import { endOfLog, LogReader, type LogSource } from "./log-reader.ts";
import { LogWriter, MAX_PAYLOAD_BYTES, SEGMENT_BYTES, SEGMENTS } from "./log-writer.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "holdfast-log-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

function readFrom(log: LogSource, since: number): LogEvent[] {
  const reader = new LogReader(log, since);
  const decoder = new FrameDecoder();
  const events: LogEvent[] = [];
  for (let piece = reader.next(); piece !== undefined; piece = reader.next()) {
    if (piece.type === "truncated") events.push(piece);
    else events.push(...decoder.push(piece.bytes));
  }
  reader.close();
  return events;
}

const text = (events: LogEvent[]) =>
  events
    .map((e) =>
      "bytes" in e ? Buffer.from(e.bytes).toString() : e.type === "truncated" ? `<${e.from}-${e.to}>` : "",
    )
    .join("");

test("nothing is made on disk before the first byte", () => {
  const log = new LogWriter({ dir: join(dir, "logs"), id: "a" });
  expect(readdirSync(dir)).toEqual([]);
  log.write("stdout", Buffer.from("x"));
  expect(readdirSync(join(dir, "logs"))).toEqual(["a.0"]);
  log.close();
  log.close();
});

test("from every offset, exactly the rest, in order, with its stream", () => {
  const log = new LogWriter({ dir, id: "a" });
  const parts = ["ab", "c", "", "defg", "h", "ij"];
  for (const [i, part] of parts.entries()) log.write(i % 2 === 0 ? "stdout" : "stderr", Buffer.from(part));
  for (let since = 0; since <= 11; since++)
    expect(text(readFrom(log, since))).toBe("abcdefghij".slice(since));
  expect(readFrom(log, 4).map(({ type }) => type)).toEqual(["stderr", "stdout", "stderr"]);
  log.close();
});

test("pieces that come together are one frame, as long as that is not too large", () => {
  const log = new LogWriter({ dir, id: "a" });
  const half = MAX_PAYLOAD_BYTES / 2;
  const pieces = [1, 2, 3].map((i) => new Uint8Array(half + 1).fill(i));
  log.write("stdout", new Uint8Array(half).fill(7), new Uint8Array(0), new Uint8Array(half).fill(8));
  log.write("stderr", ...pieces);
  log.write("stdout", new Uint8Array(0));
  log.write("stdout", new Uint8Array(2 * half + 1).fill(9));
  const events = readFrom(log, 0).map((e) => ("bytes" in e ? [e.type, e.offset, e.bytes.length] : [e.type]));
  expect(events).toEqual([
    ["stdout", 0, 2 * half],
    ["stderr", 2 * half, half + 1],
    ["stderr", 3 * half + 1, half + 1],
    ["stderr", 4 * half + 2, half + 1],
    ["stdout", 5 * half + 3, 2 * half],
    ["stdout", 7 * half + 3, 1],
  ]);
  const all = Buffer.concat(readFrom(log, 0).flatMap((e) => ("bytes" in e ? [e.bytes] : [])));
  const wanted = [7, 8].map((i) => new Uint8Array(half).fill(i));
  expect(all.equals(Buffer.concat([...wanted, ...pieces, new Uint8Array(2 * half + 1).fill(9)]))).toBe(true);
  log.close();
});

test("the ring drops its oldest segment; a reader is told exactly which bytes, also one that was in the middle", () => {
  const log = new LogWriter({ dir, id: "a" });
  const chunk = new Uint8Array(100_000);
  const reader = new LogReader(log, 0);
  log.write("stdout", chunk);
  const first = reader.next();
  for (let i = 1; i < 1000; i++) log.write("stdout", chunk);
  expect(log.range.nextOffset).toBe(100_000_000);
  expect(log.starts.length).toBe(SEGMENTS);
  expect(readdirSync(dir).length).toBe(SEGMENTS);
  const { firstOffset } = log.range;
  expect(firstOffset).toBeGreaterThan(100_000_000 - SEGMENTS * SEGMENT_BYTES);
  expect(readFrom(log, 5)[0]).toEqual({ type: "truncated", from: 5, to: firstOffset });
  // The one in the middle still has its segment open, and reads that to its end before the gap.
  let [at, gaps] = [first?.type === "frames" ? 100_000 : 0, 0];
  for (let piece = reader.next(); piece !== undefined; piece = reader.next()) {
    if (piece.type === "truncated") {
      expect(piece.from).toBe(at);
      expect(piece.from).toBeGreaterThan(8_000_000);
      gaps += 1;
      at = piece.to;
    } else for (const e of new FrameDecoder().push(piece.bytes)) at += "bytes" in e ? e.bytes.length : 0;
  }
  expect([at, gaps]).toEqual([100_000_000, 1]);
  reader.close();
  log.close();
});

test("a segment that vanishes is a gap of exactly its bytes, and writing goes on", () => {
  const log = new LogWriter({ dir, id: "a" });
  log.write("stdout", new Uint8Array(SEGMENT_BYTES - 1000));
  log.write("stdout", Buffer.from("x".repeat(2000)));
  const [, second = 0] = log.starts;
  rmSync(join(dir, "a.0"));
  const [gap, ...rest] = readFrom(log, 0);
  expect(gap).toEqual({ type: "truncated", from: 0, to: second });
  expect(rest.reduce((sum, event) => sum + ("bytes" in event ? event.bytes.length : 0), second)).toBe(
    log.range.nextOffset,
  );
  log.close();
});

describe("on disk after a crash, or forged by the work", () => {
  const good = encodeFrame({ type: "stdout", offset: 0, bytes: Buffer.from("good") });
  const stored = (nextOffset: number): LogSource => ({
    dir,
    id: "a",
    starts: [0],
    range: { firstOffset: 0, nextOffset },
  });

  test.each([
    ["a torn header", good.subarray(0, 7)],
    [
      "a torn payload",
      encodeFrame({ type: "stdout", offset: 4, bytes: Buffer.from("torn") }).subarray(0, 18),
    ],
    ["an unknown kind", Buffer.alloc(64, 0xff)],
    ["a frame of no bytes, for ever", Buffer.alloc(64)],
    ["an offset from elsewhere", encodeFrame({ type: "stdout", offset: 2 ** 50, bytes: Buffer.from("far") })],
  ])("%s", (_, bytes) => {
    writeFileSync(join(dir, "a.0"), good);
    appendFileSync(join(dir, "a.0"), bytes);
    expect(text(readFrom(stored(4), 0))).toBe("good");
    expect(text(readFrom(stored(10), 0))).toBe("good<4-10>");
    expect(endOfLog({ dir, id: "a", starts: [0] })).toBeLessThanOrEqual(2 ** 50 + 3);
  });

  test("a frame whose bytes are not those that were written is not given out, nor what follows it", () => {
    const log = new LogWriter({ dir, id: "a" });
    log.write("stdout", Buffer.from("good"));
    log.write("stdout", Buffer.from("half"), Buffer.from(" of it"));
    log.write("stdout", Buffer.from("more"));
    log.close();
    expect(text(readFrom(log, 0))).toBe("goodhalf of itmore");
    const bytes = readFileSync(join(dir, "a.0"));
    bytes.write("old", bytes.indexOf(" of it") + 3);
    writeFileSync(join(dir, "a.0"), bytes);
    expect(text(readFrom(log, 0))).toBe("good<4-18>");
    expect(text(readFrom(log, 14))).toBe("more");
    expect(endOfLog({ dir, id: "a", starts: [0] })).toBe(4);
  });

  test("frames that repeat what was read are skipped", () => {
    writeFileSync(join(dir, "a.0"), Buffer.concat([good, good, good]));
    expect(text(readFrom(stored(4), 0))).toBe("good");
    expect(endOfLog({ dir, id: "a", starts: [0] })).toBe(4);
  });

  test("a link or a directory is not read", () => {
    symlinkSync("/etc/passwd", join(dir, "a.0"));
    expect(text(readFrom(stored(4), 0))).toBe("<0-4>");
  });

  test("a link where the directory was is taken away, and nothing behind it is touched", () => {
    writeFileSync(join(dir, "mine.0"), "keep");
    mkdirSync(join(dir, "state"));
    symlinkSync(dir, join(dir, "state", "logs"));
    expect(listLogs(join(dir, "state", "logs")).size).toBe(0);
    expect(readdirSync(join(dir, "state"))).toEqual([]);
    expect(readFileSync(join(dir, "mine.0"), "utf8")).toBe("keep");
  });

  test("a link is not written through", () => {
    writeFileSync(join(dir, "target"), "safe");
    symlinkSync(join(dir, "target"), join(dir, "a.0"));
    const log = new LogWriter({ dir, id: "a" });
    log.write("stdout", Buffer.from("x"));
    log.close();
    expect(readFileSync(join(dir, "target"), "utf8")).toBe("safe");
    expect(text(readFrom(log, 0))).toBe("x");
  });
});
