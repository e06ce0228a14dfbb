import { expect, test } from "bun:test";
import { HOUR, MINUTE, SECOND, Stage } from "./stage.ts";

test("scenario 19: one that ignores SIGTERM is ended by force after two attempts, and that is verified", () => {
  const stage = new Stage();
  stage.faults({ ignores_sigterm: 1 });
  stage.running();
  stage.faults({});
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "gone", 5 * MINUTE);
  expect([stage.calls("stop graceful"), stage.calls("stop force"), stage.names()]).toEqual([2, 1, []]);
});

test("scenario 20: a stop that was carried out and did not work is tried again, and is not evidence", () => {
  const stage = new Stage();
  const instance = stage.running();
  instance.survivesUntil = stage.universe.scheduler.now + 10 * SECOND;
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.lease().attempts >= 2);
  expect([stage.phase(), stage.names().length]).toEqual(["stopping", 1]);
  stage.until(() => stage.phase() === "gone", 5 * MINUTE);
});

test("scenario 21: a stop whose answer was lost: the next look gives the evidence, at the second attempt", () => {
  const stage = new Stage({ remote: true });
  stage.running();
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "stopping");
  stage.once("lost_reply");
  stage.until(() => stage.phase() === "gone", HOUR);
  expect([stage.names(), stage.lease().attempts]).toEqual([[], 2]);
});

test("scenario 22: a restart in the middle of the ladder changes neither the attempts nor the next of them", () => {
  const stage = new Stage();
  stage.running().survivesUntil = Number.POSITIVE_INFINITY;
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.lease().attempts === 3 && stage.phase() === "stop_due", HOUR);
  const { attempts, nextAttemptAt } = stage.lease();
  stage.server().kill();
  stage.advance(SECOND);
  stage.server().start();
  stage.advance(SECOND);
  expect(stage.lease()).toMatchObject({ attempts, nextAttemptAt });
});

test("scenario 23: a thousand repeated wishes reset no attempts, and ask the backend no more often", () => {
  const stage = new Stage();
  stage.running().survivesUntil = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 1000; i++) {
    const options = { mode: "graceful", waitMs: 0 } as const;
    stage.ask<unknown>(({ sandboxes }) => (i % 2 ? sandboxes.stop("box") : sandboxes.delete("box", options)));
    if (i % 50 === 0) stage.advance(SECOND);
  }
  stage.advance(10 * SECOND);
  const { attempts } = stage.lease();
  expect([attempts <= 4, stage.calls("stop graceful") + stage.calls("stop force") <= 4]).toEqual([
    true,
    true,
  ]);
});

test("scenario 24: what comes of an attempt that was given up changes nothing", () => {
  const stage = new Stage({ remote: true });
  stage.running().survivesUntil = stage.universe.scheduler.now + 40 * SECOND;
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "stopping");
  stage.once("slow_call");
  stage.until(() => stage.lease().attempts === 2, 5 * MINUTE);
  stage.advance(2 * MINUTE);
  // The watched invariants are the point: no write of the first attempt under the second.
  stage.until(() => stage.phase() === "gone", HOUR);
});

test("scenario 25: when the attempts are spent it is quarantined, and a user's call makes one more at once", () => {
  const stage = new Stage();
  stage.running().survivesUntil = Number.POSITIVE_INFINITY;
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "quarantined", HOUR);
  const before = stage.calls("stop force");
  const calls = Array.from({ length: 5 }, () => stage.ask(({ sandboxes }) => sandboxes.use("box")));
  stage.advance(5 * SECOND);
  expect(stage.calls("stop force") - before).toBe(1);
  stage.until(() => calls.every(({ state }) => state !== "waiting"), MINUTE);
  expect(new Set(calls.map(({ code }) => code))).toEqual(new Set(["cleanup_quarantined"]));
});

test("scenario 26: a quarantined one whose host is rebooted is gone, and a call that needs it launches the next", () => {
  const stage = new Stage();
  stage.running().survivesUntil = Number.POSITIVE_INFINITY;
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "quarantined", HOUR);
  stage.backend.reboot();
  const call = stage.ask(({ sandboxes }) => sandboxes.use("box"));
  stage.until(() => call.state !== "waiting", MINUTE);
  expect([call.state, stage.leases()[0]?.evidence?.kind, stage.lease().generation]).toEqual([
    "done",
    "host_reset",
    2,
  ]);
});

test("scenario 27: a graceful stop becomes a forced one once, and never goes back", () => {
  const stage = new Stage();
  stage.running().survivesUntil = stage.universe.scheduler.now + MINUTE;
  stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "graceful", waitMs: 0 }));
  stage.until(() => stage.phase() === "stop_due" && stage.lease().attempts === 1);
  stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "force", waitMs: 0 }));
  stage.advance(SECOND);
  expect(stage.calls("stop force")).toBe(1);
  stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "graceful", waitMs: 0 }));
  stage.until(() => stage.phase() === "gone", HOUR);
  expect(stage.calls("stop graceful")).toBe(1);
});
