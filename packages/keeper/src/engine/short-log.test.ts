import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeFrame, FrameDecoder, type KeeperBoot } from "@holdfast/protocol";
import { finishedState, sourceOf } from "./command-state.ts";
import { Engine } from "./engine.ts";
import { LogReader, type LogSource } from "./log-reader.ts";
import { LogWriter, SHORT_LOG_BYTES } from "./log-writer.ts";
import { logToRead } from "./lookup.ts";
import type { FinishedRecord } from "./record.ts";
import type { Run } from "./run.ts";

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "holdfast-short-"));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

const open = () => new Engine({ stateDir, env: {} } as KeeperBoot, { now: () => Date.parse("2026-01-01") });
const ending = { exitCode: 0, signal: null, timedOut: false, cancelled: false, oomKilled: false };
const fileOf = (id: string) => join(stateDir, "logs", `${id}.0`);

function begin(engine: Engine, id: string): Run {
  const facts = { shell: "none", maxOutputBytes: 10_000 } as const;
  const claim = engine.claim({ id, kind: "exec", fingerprint: "f", facts });
  if (claim.state !== "new") throw new Error(`${id} is ${claim.state}`);
  return claim.run;
}

function recordOf(engine: Engine, id: string): FinishedRecord {
  const record = engine.records.find(id);
  if (record?.end === undefined) throw new Error(`${id} has not ended`);
  return { ...record, end: record.end };
}

/** Each byte of a log from an offset, with its stream: `o` or `e`, and `?` for one that is missing. */
function readFrom(log: LogSource, since: number): string {
  const reader = new LogReader(log, since);
  const decoder = new FrameDecoder();
  let read = "";
  for (let piece = reader.next(); piece !== undefined; piece = reader.next()) {
    if (piece.type === "truncated") read += "?".repeat(piece.to - piece.from);
    else
      for (const event of decoder.push(piece.bytes))
        if ("bytes" in event)
          read += Buffer.from(event.bytes)
            .toString()
            .replace(/./gs, (c) => (event.type === "stdout" ? c : c.toUpperCase()));
  }
  reader.close();
  return read;
}

/** `stdout` and `stderr` in turns, so long that the log is short until the last part, or no longer. */
const parts = ["ab", "c", "defg", "hi", "j"];

test.each(["short", "moved"])(
  "a %s log gives from every offset exactly the rest, while it is written and after",
  (how) => {
    const engine = open();
    const run = begin(engine, "a");
    let written = "";
    const check = (log: LogSource) => {
      for (let since = 0; since <= written.length; since++)
        expect(readFrom(log, since)).toBe(written.slice(since));
    };
    const write = (stream: "stdout" | "stderr", text: string) => {
      run.write(stream, Buffer.from(text));
      written += stream === "stdout" ? text : text.toUpperCase();
      check(logToRead(engine, { id: "a", what: "command" }));
    };
    for (const [i, part] of parts.entries()) write(i % 2 === 0 ? "stdout" : "stderr", part);
    expect(existsSync(fileOf("a"))).toBe(false);
    if (how === "moved") {
      write("stderr", "x".repeat(SHORT_LOG_BYTES));
      write("stdout", "y");
      expect(existsSync(fileOf("a"))).toBe(true);
    }
    run.finish(ending, { at: engine.now });
    engine.close();
    // Also for the next keeper, and for the one after the journal was written anew.
    for (let again = 0; again < 3; again++) {
      const next = open();
      const record = recordOf(next, "a");
      check(sourceOf(next, record));
      const [out, err] = [/[^A-Z]/g, /[A-Z]/g].map((of) => written.match(of)?.join("") ?? "");
      expect(finishedState(next, record)).toMatchObject({ stdout: out, stderr: err?.toLowerCase() });
      next.close();
    }
  },
);

test("what a command had said when its keeper died is there, short or not, also if its file was just being made", () => {
  const engine = open();
  for (const id of ["silent", "short", "empty-file", "half-a-file", "long"]) begin(engine, id);
  for (const id of ["short", "empty-file", "half-a-file", "long"]) {
    engine.running(id)?.write("stdout", Buffer.from("one "));
    engine.running(id)?.write("stderr", Buffer.from("two"));
  }
  engine.running("long")?.write("stdout", Buffer.alloc(SHORT_LOG_BYTES, "x"));
  mkdirSync(join(stateDir, "logs"), { recursive: true });
  writeFileSync(fileOf("empty-file"), "");
  writeFileSync(
    fileOf("half-a-file"),
    encodeFrame({ type: "stdout", offset: 0, bytes: Buffer.from("one ") }),
  );
  const next = open(); // the first was not told that it has ended
  const logOf = (id: string) => readFrom(sourceOf(next, recordOf(next, id)), 0);
  expect(logOf("silent")).toBe("");
  for (const id of ["short", "empty-file", "half-a-file"]) {
    expect([id, logOf(id)]).toEqual([id, "one TWO"]);
    expect(existsSync(fileOf(id))).toBe(false);
  }
  expect(logOf("long")).toBe(`one TWO${"x".repeat(SHORT_LOG_BYTES)}`);
  expect(recordOf(next, "short").end.result).toEqual({ state: "lost", reason: "keeper_lost" });
  next.close();
  engine.close();
});

test("a log that the journal has no room for has a file, with all that it had said before", () => {
  let room = 1;
  const dir = join(stateDir, "logs");
  const log = new LogWriter({ dir, id: "a", journal: () => room-- > 0 });
  log.write("stdout", Buffer.from("in the journal, "));
  expect(existsSync(fileOf("a"))).toBe(false);
  log.write("stderr", Buffer.from("in a file"));
  expect(readFrom(log, 0)).toBe("in the journal, IN A FILE");
  log.close();
  const found = { id: "a", dir, starts: [0], range: log.range };
  expect(readFrom(found, 3)).toBe("the journal, IN A FILE");
});

test("what others wrote into the journal as output is not believed", () => {
  const engine = open();
  begin(engine, "a").write("stdout", Buffer.from("mine"));
  engine.close();
  const frame = Buffer.from(encodeFrame({ type: "stdout", offset: 4, bytes: Buffer.alloc(300) })).toString(
    "base64",
  );
  const forged = [
    { line: "output", id: "a", frame: "A".repeat(4_000_000) },
    { line: "output", id: "a", frame: "no base64!" },
    { line: "output", id: "unknown", frame },
    { line: "output", id: "../../escape", frame },
    { line: "output", id: "a", frame: Buffer.from("garbage that is no frame at all").toString("base64") },
    { line: "output", id: "a", frame },
    { line: "output", id: "a", frame },
  ];
  appendFileSync(join(stateDir, "journal"), forged.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const next = open();
  expect(readFrom(sourceOf(next, recordOf(next, "a")), 0)).toBe("mine");
  expect(next.records.find("unknown")).toBeUndefined();
  next.close();
});
