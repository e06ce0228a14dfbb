import { expect, test } from "bun:test";
import type { InstanceRef } from "@holdfast/core";
import { HOUR, MINUTE, SECOND, Stage } from "./stage.ts";

const plan = { spec: {}, hostname: "found", secret: "found", lifetimeSeconds: 600, fence: 1 };

/** An instance of ours that no row knows. */
function orphan(
  stage: Stage,
  over: { sandboxId?: string; instanceId?: string; lifetimeSeconds?: number } = {},
) {
  const { sandboxId = "lost", instanceId = `found-${sandboxId}`, lifetimeSeconds = 600 } = over;
  const ref = { installationId: stage.universe.installationId, sandboxId, instanceId, generation: 1 };
  const instance = stage.backend.plant(ref, { ...plan, lifetimeSeconds }, {});
  // What ends it must be the sweep, not its own deadline.
  instance.keeper.admit({ ...ref, ...admission }, 1);
  return instance;
}

const listings = { "an error": "discover_error", "empty, with 200": "discover_lies_empty" } as const;
test.each(Object.entries(listings))("scenario 35: a list that is %s ends nothing", (_, fault) => {
  const stage = new Stage();
  stage.running({ onIdle: "keep" });
  stage.faults({ [fault]: 1 });
  stage.advance(HOUR);
  expect([stage.phase(), stage.names().length]).toEqual(["live", 1]);
});

const admission = {
  ...{ fence: 1, lifetimeSeconds: 86_400, maxLifetimeSeconds: null, orphanLimitSeconds: 864_000 },
  ...{ spare: false, env: {} },
};

test("scenario 36: a store that cannot be read in the middle of a sweep ends nothing", () => {
  const stage = new Stage();
  stage.running({ onIdle: "keep" });
  orphan(stage);
  stage.faults({ store_busy: 0.5 });
  stage.advance(10 * MINUTE);
  expect(stage.names().length).toBe(2);
});

test("scenario 37: a fresh instance of a known sandbox is left alone for the creation grace", () => {
  const stage = new Stage();
  const { ref } = stage.running();
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "gone");
  const { sandboxId } = ref;
  orphan(stage, { sandboxId, instanceId: "fresh" });
  stage.advance(110 * SECOND);
  expect(stage.names().length).toBe(1);
  stage.advance(5 * MINUTE);
  expect(stage.names()).toEqual([]);
});

test("scenario 38: an orphan of 1.9 lifetimes is kept, of 2.1 removed, through a row of its own", () => {
  const stage = new Stage();
  orphan(stage);
  stage.advance(19 * MINUTE);
  expect(stage.names().length).toBe(1);
  stage.advance(3 * MINUTE);
  expect([stage.names(), stage.lease()]).toMatchObject([
    [],
    { origin: "orphan", phase: "gone", admittedAt: null },
  ]);
});

test("scenario 39: what is another installation's is never touched, whatever it is called", () => {
  const stage = new Stage();
  const ref = { installationId: "another", sandboxId: "theirs", instanceId: "theirs", generation: 1 };
  const { keeper } = stage.backend.plant(ref, plan, {});
  keeper.admit({ ...ref, ...admission }, 1);
  stage.advance(3 * HOUR);
  expect([stage.names().length, stage.leases()]).toEqual([1, []]);
});

test("scenario 40: one that is known by its name alone is seen, stopped, and never used", () => {
  const stage = new Stage();
  const ref = {
    installationId: stage.universe.installationId,
    sandboxId: "old",
    instanceId: "old",
    generation: 1,
  };
  const { keeper } = stage.backend.plant(ref, plan, { legacy: true });
  keeper.admit({ ...ref, ...admission }, 1);
  stage.advance(3 * HOUR);
  expect([stage.names(), stage.lease().origin, stage.lease().admittedAt]).toEqual([[], "orphan", null]);
});

test("scenario 41: of two for one sandbox the one without a row is stopped, and the other goes on", () => {
  const stage = new Stage();
  const { ref } = stage.running({ onIdle: "keep" });
  const second = { ...ref, instanceId: "second", generation: 0 };
  stage.backend.plant(second, plan, { isGhost: true });
  stage.advance(10 * MINUTE);
  expect(stage.names()).toEqual([`hf-${ref.sandboxId}-g1`]);
});

/** Its second instance works, and the rows are from before it. No server runs. */
function fromABackup(): { stage: Stage; ref: InstanceRef } {
  const stage = new Stage();
  stage.running({ lifetimeSeconds: 600 });
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.until(() => stage.phase() === "gone");
  const backup = stage.universe.database.backup();
  const { ref, keeper } = stage.running();
  keeper.workFor(HOUR);
  stage.server().kill();
  stage.universe.database.restore(backup);
  stage.universe.book.ledgers.clear();
  stage.universe.book.tickets.clear();
  stage.universe.history.forgotten.add(ref.sandboxId);
  return { stage, ref };
}

test("scenario 42: a store from a backup hands out no generation again, and ends no newer instance before its time", () => {
  const { stage, ref } = fromABackup();
  stage.server().start();
  stage.advance(15 * MINUTE);
  expect(stage.names()).toEqual([`hf-${ref.sandboxId}-g2`]);
  stage.until(() => stage.names().length === 0, HOUR);
  const call = stage.ask(({ sandboxes }) => sandboxes.use("box"));
  stage.until(() => call.state !== "waiting");
  expect([call.state, stage.names()]).toEqual(["done", [`hf-${ref.sandboxId}-g3`]]);
});

test("scenario 42: nor to a call that comes after any step of the server's start", () => {
  for (let afterSteps = 1; afterSteps < 40; afterSteps++) {
    const { stage, ref } = fromABackup();
    stage.server().start();
    const first = stage.universe.scheduler.steps;
    stage.until(() => stage.universe.scheduler.steps - first >= afterSteps);
    const call = stage.ask(({ sandboxes }) => sandboxes.use("box"));
    stage.until(() => call.state !== "waiting");
    // Refused, as long as it is not known what is there; then the one that is in the way is ended first.
    const isRefused = call.code === "provider_unavailable";
    expect(call.state).toBe(isRefused ? "failed" : "done");
    expect(stage.names()).toEqual([`hf-${ref.sandboxId}-g${isRefused ? 2 : 3}`]);
  }
});

test("scenario 43: the brake holds back a mass kill, and lets go when a second pass finds the same", () => {
  const stage = new Stage();
  const names = Array.from({ length: 8 }, (_, i) => `box${i}`);
  for (const name of names) stage.ask(({ sandboxes }) => sandboxes.create({ name, provider: "local" }));
  stage.until(() => stage.universe.book.ledgers.size === names.length);
  const ids = [...stage.universe.book.ledgers.keys()];
  for (const name of names)
    stage.ask(({ sandboxes }) => sandboxes.delete(name, { mode: "force", waitMs: 0 }));
  stage.until(() => [...stage.universe.book.ledgers.values()].every(({ sandbox }) => sandbox === undefined));
  for (const sandboxId of ids) orphan(stage, { sandboxId });
  const rowsAfter = (passes: number) => {
    const sweeps = stage.calls("discover") + passes;
    stage.until(() => stage.calls("discover") >= sweeps);
    stage.advance(5 * SECOND);
    return stage.leases().filter(({ origin }) => origin === "orphan").length;
  };
  expect([rowsAfter(1), rowsAfter(1)]).toEqual([0, 8]);
  stage.until(() => stage.names().length === 0, 10 * MINUTE);
});
