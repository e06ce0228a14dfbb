import { expect, test } from "bun:test";
import { judgeRare, type rare } from "./rare.ts";
import { HOUR, MINUTE, SECOND, Stage } from "./stage.ts";

test("scenario 12: a use on another server just before the idle check is seen in the transaction", () => {
  const stage = new Stage({ servers: 2 });
  stage.running({ lifetimeSeconds: 60 });
  for (let i = 0; i < 10; i++) {
    stage.advance(58 * SECOND);
    stage.ask(({ sandboxes }) => sandboxes.touch("box"), stage.server(1));
    stage.advance(SECOND);
  }
  expect(stage.phase()).toBe("live");
  stage.until(() => stage.phase() === "gone", 5 * MINUTE);
  expect(stage.lease().stopReason).toBe("idle");
});

test.each<keyof typeof rare>(["last-moment", "late-create"])(
  "scenarios 3 and 12, in other orders: %s",
  (name) => {
    const broken = [1, 2, 3, 4, 5, 6].map((seed) => judgeRare(name, seed).violation);
    expect(broken.filter((violation) => violation !== undefined)).toEqual([]);
  },
);

test("scenario 13: an open turn outlasts the lifetime, and idleness counts from its end", () => {
  const stage = new Stage();
  stage.running({ lifetimeSeconds: 60, turnTimeoutSeconds: 3600 });
  const turn = stage.ask(({ turns }) => turns.begin("box", {}));
  stage.until(() => turn.state === "done");
  stage.advance(30 * MINUTE);
  expect(stage.phase()).toBe("live");
  stage.ask(({ turns }) => turns.end("box", turn.value?.turn.turnId ?? ""));
  stage.advance(59 * SECOND);
  expect(stage.phase()).toBe("live");
  stage.until(() => stage.phase() === "gone", 2 * MINUTE);
});

test("scenario 14: a shorter lifetime takes effect, after the keeper was asked", () => {
  const stage = new Stage();
  stage.running({ lifetimeSeconds: 3600 });
  stage.advance(10 * MINUTE);
  stage.ask(({ sandboxes }) => sandboxes.update("box", { lifetimeSeconds: 60 }));
  stage.until(() => stage.phase() === "gone", 2 * MINUTE);
  expect(stage.lease().stopReason).toBe("idle");
});

test("scenario 15: a crash right after the end of its last turn: it is removed all the same", () => {
  const stage = new Stage();
  stage.running({ persistent: false });
  const turn = stage.ask(({ turns }) => turns.begin("box", {}));
  stage.until(() => turn.state === "done");
  const { sandboxId } = stage.lease();
  stage.ask(({ turns }) => turns.end("box", turn.value?.turn.turnId ?? ""));
  stage.until(() => stage.universe.book.ledgers.get(sandboxId)?.sandbox?.turns.length === 0);
  stage.server().kill();
  stage.advance(SECOND);
  stage.server().start();
  stage.until(() => stage.universe.book.ledgers.get(sandboxId)?.sandbox === undefined, MINUTE);
  expect([stage.names(), stage.backend.disks.size]).toEqual([[], 0]);
});

test("scenario 17: a persistent sandbox survives a rolling restart of all servers, with its fence", () => {
  const stage = new Stage({ servers: 3 });
  const { keeper } = stage.running({ onIdle: "keep" });
  const { fence } = keeper;
  for (const replica of stage.universe.replicas) {
    replica.kill();
    stage.advance(20 * SECOND);
    replica.start();
    stage.advance(2 * MINUTE);
  }
  expect([keeper.alive, keeper.fence, stage.phase(), keeper.contacts.size > 0]).toEqual([
    true,
    fence,
    "live",
    true,
  ]);
});

test("scenario 18: with every server gone for ever the keeper ends, also one whose clock drifts", () => {
  const stage = new Stage();
  const { keeper } = stage.running({ lifetimeSeconds: 900 });
  stage.server().isGoneForEver = true;
  stage.server().kill();
  stage.advance(29 * MINUTE);
  expect(keeper.alive).toBe(true);
  stage.advance(2 * MINUTE);
  expect([keeper.alive, stage.backend.disks.size]).toEqual([false, 1]);
});

test("scenario 49: a commit whose answer is lost, at every write: each is gone on with, and nothing is made twice", () => {
  const stage = new Stage({ plan: { store_error_after_commit: 0.3 } });
  for (let i = 0; i < 20 && stage.phase() !== "live"; i++) {
    stage.launch();
    stage.advance(MINUTE);
  }
  stage.faults({});
  stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "graceful", waitMs: 0 }));
  stage.until(() => stage.names().length === 0 && stage.backend.disks.size === 0, HOUR);
});

test("scenario 50: a server that cannot reach the store stops acting before its ticket is over", () => {
  const stage = new Stage({ servers: 2 });
  stage.running().survivesUntil = stage.universe.scheduler.now + 10 * MINUTE;
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "stopping");
  stage.server(0).cut.store = true;
  // Every call of a provider is checked for its ticket; that none is broken is the point.
  stage.advance(20 * MINUTE);
  stage.server(0).cut.store = false;
  stage.until(() => stage.phase() === "gone", HOUR);
});

test("scenario 51: a host that is away for two hours costs one probe at a time, and no attempts", () => {
  const stage = new Stage();
  const creations = Array.from({ length: 40 }, (_, i) =>
    stage.ask(({ sandboxes }) =>
      sandboxes.ensure(`box${i}`, { provider: "local" }).then(() => sandboxes.use(`box${i}`)),
    ),
  );
  stage.until(() => creations.every(({ state }) => state !== "waiting"), HOUR);
  const running = stage.names().length;
  stage.backend.unreachableUntil = stage.universe.scheduler.now + 2 * HOUR;
  for (let i = 0; i < 40; i++) stage.ask(({ sandboxes }) => sandboxes.stop(`box${i}`));
  stage.advance(10 * MINUTE);
  stage.universe.witness.rates.calls.clear();
  stage.advance(HOUR);
  const calls = [...stage.universe.witness.rates.calls.values()].reduce((sum, count) => sum + count, 0);
  const attempts = Math.max(...stage.leases().map((lease) => lease.attempts));
  expect([running > 0, calls <= 80, attempts <= 3]).toEqual([true, true, true]);
  stage.advance(50 * MINUTE);
  stage.until(() => stage.names().length === 0, 10 * MINUTE);
});

const jumps = [-60, 60];
test.each(jumps)(
  "scenario 52: a clock that jumps %d minutes reaps nothing early and blocks nothing",
  (minutes) => {
    const stage = new Stage();
    stage.running({ lifetimeSeconds: 600 });
    stage.server().jump(minutes * MINUTE);
    stage.advance(9 * MINUTE);
    expect(stage.phase()).toBe("live");
    stage.until(() => stage.phase() === "gone", 20 * MINUTE);
    expect(stage.lease().stopReason).toBe("idle");
  },
);

test.each(jumps)(
  "scenario 52: a clock that jumps %d minutes after any step of a launch does not end it",
  (minutes) => {
    for (let afterSteps = 1; ; afterSteps++) {
      const stage = new Stage({ remote: true });
      const first = stage.universe.scheduler.steps;
      const call = stage.launch();
      stage.until(() => call.state !== "waiting" || stage.universe.scheduler.steps - first >= afterSteps);
      const isOver = call.state !== "waiting";
      stage.server().jump(minutes * MINUTE);
      stage.until(() => call.state !== "waiting", MINUTE);
      const lives = stage.leases().map(({ phase, stopReason }) => ({ phase, stopReason }));
      expect([call.state, lives]).toEqual(["done", [{ phase: "live", stopReason: null }]]);
      if (isOver) break;
    }
  },
);

test("after a clock was put back, what could not be ended at once is not forgotten until that time comes again", () => {
  const stage = new Stage();
  stage.running();
  stage.server().jump(-HOUR);
  stage.advance(MINUTE);
  stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "force", waitMs: 0 }));
  const { sandboxId } = stage.lease();
  stage.until(() => stage.universe.book.ledgers.get(sandboxId)?.sandbox?.desired === "deleted");
  stage.faults({ store_busy: 1 });
  stage.advance(10 * SECOND);
  stage.faults({});
  stage.until(() => stage.names().length === 0, 2 * MINUTE);
});

test("a server dies after every step of giving back what a clock was set by: nothing waits by that twice", () => {
  for (let afterSteps = 1; ; afterSteps++) {
    const stage = new Stage();
    stage.running();
    const turn = stage.ask(({ turns }) => turns.begin("box", {}));
    stage.until(() => turn.state === "done");
    const { sandboxId } = stage.lease();
    const expiresAt = () => stage.universe.book.ledgers.get(sandboxId)?.sandbox?.turns[0]?.expiresAt ?? 0;
    const before = expiresAt();
    stage.server().jump(-HOUR);
    const first = stage.universe.scheduler.steps;
    const look = stage.ask(({ sandboxes }) => sandboxes.get("box"));
    stage.universe.advance(
      MINUTE,
      () => look.state !== "waiting" || stage.universe.scheduler.steps - first >= afterSteps,
    );
    const isOver = look.state !== "waiting";
    stage.server().kill();
    stage.advance(SECOND);
    stage.server().start();
    stage.advance(MINUTE);
    expect(Math.abs(expiresAt() - before + HOUR)).toBeLessThan(30 * SECOND);
    if (isOver) break;
  }
});

test("scenario 54: a row that lost its timer gets it back within five minutes", () => {
  const stage = new Stage();
  stage.running({ lifetimeSeconds: 60 });
  stage.universe.database.run("UPDATE work SET due_at = NULL");
  stage.until(() => stage.phase() === "gone", 7 * MINUTE);
});
