import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError, type KeeperBoot } from "@holdfast/protocol";
import { Engine } from "./engine.ts";
import { SHORT_LOG_BYTES } from "./log-writer.ts";
import type { RunKind } from "./record.ts";
import { KEPT_COMMANDS, KEPT_MS, KEPT_PROCESSES } from "./records.ts";

let stateDir: string;
let now = 0;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "holdfast-records-"));
  now = Date.parse("2026-01-01");
});
afterEach(() => rmSync(stateDir, { recursive: true }));

const open = () => new Engine({ stateDir, env: {} } as KeeperBoot, { now: () => now });
const ending = { exitCode: 0, signal: null, timedOut: false, cancelled: false, oomKilled: false };

function run(
  engine: Engine,
  id: string | undefined,
  options: { kind?: RunKind; output?: string } = {},
): string {
  const { kind = "exec", output = "" } = options;
  const claim = engine.claim({ id, kind, fingerprint: "f", facts: { shell: "none", maxOutputBytes: 100 } });
  if (claim.state !== "new") throw new Error(`${id} is ${claim.state}`);
  claim.run.write("stdout", Buffer.from(output));
  claim.run.finish(ending, { at: now });
  return claim.run.id;
}

/** `kept`, `expired` or `unknown`. */
function lookUp(engine: Engine, id: string): string {
  try {
    return engine.records.find(id) === undefined ? "unknown" : "kept";
  } catch (error) {
    return error instanceof HoldfastError && error.code === "record_expired" ? "expired" : String(error);
  }
}

test("a record is kept for its time, then it is expired, never new; with its log", () => {
  const engine = open();
  run(engine, "chosen", { output: "x".repeat(SHORT_LOG_BYTES) });
  const made = run(engine, undefined, { output: "y".repeat(SHORT_LOG_BYTES) });
  now += KEPT_MS;
  expect([lookUp(engine, "chosen"), lookUp(engine, made)]).toEqual(["kept", "kept"]);
  expect(readdirSync(join(stateDir, "logs")).length).toBe(2);
  now += 1;
  expect([lookUp(engine, "chosen"), lookUp(engine, made), lookUp(engine, "other")]).toEqual([
    "expired",
    "expired",
    "unknown",
  ]);
  expect(readdirSync(join(stateDir, "logs"))).toEqual([]);
  expect(() => run(engine, "chosen")).toThrow("no longer kept");
  engine.close();
  const next = open();
  expect([lookUp(next, "chosen"), lookUp(next, made), lookUp(next, "other")]).toEqual([
    "expired",
    "expired",
    "unknown",
  ]);
  next.close();
});

test("a burst of commands pushes out commands, not processes", () => {
  const engine = open();
  run(engine, "the-build", { kind: "process", output: "log" });
  const first = run(engine, undefined);
  for (let i = 0; i < KEPT_COMMANDS; i++) run(engine, undefined);
  expect([lookUp(engine, "the-build"), lookUp(engine, first)]).toEqual(["kept", "expired"]);
  for (let i = 0; i < KEPT_PROCESSES; i++) run(engine, `p${i}`, { kind: "process" });
  expect([lookUp(engine, "the-build"), lookUp(engine, "p0")]).toEqual(["expired", "kept"]);
  engine.close();
});

test("10,000 commands leave a bounded journal and bounded logs", async () => {
  const engine = open();
  const [long, short] = ["x".repeat(SHORT_LOG_BYTES), "x".repeat(SHORT_LOG_BYTES / 2)];
  for (let i = 0; i < 10_000; i++) {
    run(engine, i % 2 === 0 ? `chosen-${i}` : undefined, { output: i % 3 === 0 ? long : short });
    if (i % 10 === 9) await new Promise(setImmediate); // it tidies up between two turns
  }
  expect(statSync(join(stateDir, "journal")).size).toBeLessThan(8 * 1024 * 1024);
  expect(readdirSync(join(stateDir, "logs")).length).toBeWithin(KEPT_COMMANDS / 3 - 1, KEPT_COMMANDS / 3 + 2);
  expect(lookUp(engine, "chosen-0")).toBe("expired");
  engine.close();
  const next = open();
  expect(lookUp(next, "chosen-0")).toBe("expired");
  expect(lookUp(next, "chosen-9998")).toBe("kept");
  next.close();
});

test("a start that failed leaves no record; logs without a record are removed at the next start", () => {
  const engine = open();
  const claim = engine.claim({ id: "no", kind: "exec", fingerprint: "f", facts: { shell: "none" } });
  if (claim.state !== "new") throw new Error("not new");
  claim.run.write("stdout", Buffer.from("x"));
  engine.abandon(claim.run);
  expect(lookUp(engine, "no")).toBe("unknown");
  engine.close();
  const next = open();
  expect(lookUp(next, "no")).toBe("unknown");
  expect(existsSync(join(stateDir, "logs", "no.0"))).toBe(false);
  next.close();
});

test("order of keys and patience do not make another request; anything else does", async () => {
  const { fingerprint } = await import("./ids.ts");
  const base = fingerprint({ command: "a", env: { A: "1", B: "2" } });
  expect(fingerprint({ env: { B: "2", A: "1" }, command: "a" })).toBe(base);
  const others = [
    { command: "a", env: { A: "1", B: "3" } },
    { command: ["a"], env: { A: "1", B: "2" } },
    { command: "a", env: { A: "1", B: "2" }, stdin: "" },
    { command: "a", env: { A: "1", B: "2" }, stdin: { base64: "" } },
    { command: "a", env: { A: "1", B: "2" }, timeoutMs: 1 },
  ].map(fingerprint);
  expect(new Set([base, ...others]).size).toBe(6);
});
