import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Journal, type JournalLine } from "./journal.ts";
import type { RunEnd, RunRecord } from "./record.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "holdfast-journal-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const end: RunEnd = {
  at: 2,
  result: {
    state: "exited",
    exitCode: 137,
    signal: "SIGKILL",
    timedOut: true,
    cancelled: false,
    oomKilled: false,
    kill: { verified: "lineage", killed: 2, survivors: [7], unattributed: [{ pid: 8, command: "x" }] },
  },
  written: { stdoutBytes: 3, stderrBytes: 4 },
  log: { firstOffset: 0, nextOffset: 7 },
  segments: [0, 5],
  logBytesOnDisk: 39,
  short: "AAAA",
  extra: { shellExited: { deep: [1] } },
};
const record: RunRecord = {
  id: "c1",
  kind: "process",
  fingerprint: "f",
  startedAt: 1,
  facts: {
    shell: "bash",
    maxOutputBytes: 1,
    encoding: "base64",
    command: ["ls", ""],
    cwd: "/",
    sessionId: "main",
    keepsAwake: "never",
  },
  pid: 5,
  end,
};
const least: RunRecord = {
  id: "c2",
  kind: "exec",
  fingerprint: "",
  startedAt: 1.5,
  facts: { shell: "none" },
};

/** What a keeper reads that finds this in its journal. */
function readBack(text: string): JournalLine[] {
  appendFileSync(join(dir, "journal"), text);
  const journal = new Journal(join(dir, "journal"));
  const lines = journal.read();
  journal.close();
  return lines;
}

test("what was written is read back as it was", () => {
  const lines: JournalLine[] = [
    { line: "remember", hashes: [1, 2] },
    { line: "begin", record },
    { line: "begin", record: least },
    { line: "begin", record: { ...least, facts: { shell: "sh", command: "ls" } } },
    { line: "started", id: "c2", pid: 9 },
    { line: "output", id: "c2", frame: "AQAAAA==" },
    { line: "end", id: "c2", end },
    { line: "end", id: "c2", end: { ...end, result: { state: "lost", reason: "keeper_lost" } } },
    { line: "void", id: "c3" },
    { line: "expired", id: "c1" },
  ];
  expect(readBack(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))).toStrictEqual(lines);
});

const begin = (wrong: object) => ({ line: "begin", record: { ...record, ...wrong } });
const ended = (wrong: object) => ({ line: "end", id: "c1", end: { ...end, ...wrong } });

test.each<[string, unknown]>([
  ["is no object", 1],
  ["is null", null],
  ["has no kind", {}],
  ["has a kind of its own", { line: "toString", id: "c1" }],
  ["has an id that is a path", { line: "void", id: "../c1" }],
  ["begins what has a path for an id", begin({ id: "a/b" })],
  ["begins what has no kind", begin({ kind: "cron" })],
  ["begins what has no facts", begin({ facts: undefined })],
  ["begins an empty command", begin({ facts: { shell: "sh", command: "" } })],
  ["begins a program without a name", begin({ facts: { shell: "none", command: ["", "x"] } })],
  ["begins a command with a NUL", begin({ facts: { shell: "none", command: ["a\0b"] } })],
  ["begins a command of numbers", begin({ facts: { shell: "none", command: [1] } })],
  ["begins what ended in no way", begin({ end: { ...end, result: { state: "vanished" } } })],
  ["has half a process", { line: "started", id: "c1", pid: 0.5 }],
  ["has output that is not base64", { line: "output", id: "c1", frame: "AAA" }],
  ["has more output than is kept there", { line: "output", id: "c1", frame: "A".repeat(1028) }],
  ["ends without an exit code", ended({ result: { ...end.result, exitCode: null } })],
  ["ends with a report of nothing", ended({ result: { ...end.result, kill: {} } })],
  ["ends with a segment before the beginning", ended({ segments: [-1] })],
  ["ends with more segments than there are", ended({ segments: Array.from({ length: 65 }, () => 0) })],
  ["ends with a list for its extra", ended({ extra: [] })],
  ["remembers words", { line: "remember", hashes: ["x"] }],
])("a line that %s was not written by us", (_, line) => {
  const good: JournalLine = { line: "void", id: "c9" };
  expect(readBack(`${JSON.stringify(line)}\n{"torn\n${JSON.stringify(good)}\n`)).toEqual([good]);
});
