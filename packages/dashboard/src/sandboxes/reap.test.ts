import { expect, test } from "bun:test";
import type { SandboxInfo } from "holdfast";
import { reapOf } from "./reap.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const in90s = "2026-01-01T00:01:30Z";
const sandbox: SandboxInfo = {
  id: "s",
  name: "s",
  state: "running",
  generation: 1,
  continuity: "fresh",
  provider: "local",
  spec: {},
  labels: {},
  limits: { state: "none" },
  persistent: true,
  lifetimeSeconds: 1800,
  onIdle: "stop",
  filesystem: "persistent",
  maxLifetimeSeconds: null,
  turnTimeoutSeconds: 3600,
  persistAcrossRestarts: true,
  createdAt: "2026-01-01T00:00:00Z",
  lastUsedAt: "2026-01-01T00:00:00Z",
  heldAwakeBy: [],
  openTurns: 0,
};

test.each<[Partial<SandboxInfo>, string, boolean]>([
  [{ reapsAt: in90s }, "stops in 1:30", false],
  [{ reapsAt: in90s, onIdle: "remove" }, "removed in 1:30", false],
  [{ reapsAt: in90s, filesystem: "ephemeral" }, "removed in 1:30", false],
  [{ reapsAt: "2026-01-01T00:00:20Z" }, "stops in 0:20", true],
  [{ reapsAt: "2025-12-31T23:59:00Z" }, "stops unless something runs", true],
  [{ reapsAt: "2026-01-01T00:30:00.400Z" }, "stops in 30:00", false],
  [{ heldAwakeBy: ["turn t is open"], reapsAt: in90s }, "held awake", false],
  [{}, "kept", false],
  [{ state: "stopped" }, "the next use starts it", false],
  [{ state: "failed", failure: "no room" }, "did not start", false],
])("%j: %s", (change, text, isSoon) => {
  expect(reapOf({ ...sandbox, ...change }, now)).toMatchObject({ text, isSoon });
});

test("what holds it, and why it last died, in few words", () => {
  const held = {
    ...sandbox,
    heldAwakeBy: ["turn turn_0mwl is open", "turn turn_1 is open", "1 command runs"],
  };
  expect(reapOf(held, now).because).toBe("a turn is open; 1 command runs");
  const death = { cause: "stop_requested", at: in90s, detail: "pid 1 is gone" };
  expect(reapOf({ ...sandbox, state: "stopped", lastDeath: death }, now).because).toBe("stop requested");
});
