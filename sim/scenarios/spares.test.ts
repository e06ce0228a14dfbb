import { expect, test } from "bun:test";
import { isSpare } from "@holdfast/core";
import { MINUTE, SECOND, Stage } from "./stage.ts";

/** A server with a spare, which somebody's create has left. */
function withSpare(options: ConstructorParameters<typeof Stage>[0] = {}): Stage {
  const stage = new Stage({ spares: 1, ...options });
  const first = create(stage);
  stage.until(() => first.state === "done" && spares(stage).length === 1);
  return stage;
}

function create(stage: Stage, server = stage.server()) {
  return stage.ask(async ({ sandboxes }) => {
    const made = await sandboxes.create({ provider: stage.backend.kind });
    return (await sandboxes.wake(made)).holding.sandboxId;
  }, server);
}

/** By their ids, those that live. */
function spares(stage: Stage): string[] {
  return stage
    .leases()
    .flatMap((lease) => (isSpare(lease) && lease.phase === "live" ? [lease.sandboxId] : []));
}

/** The keepers of these that do not think they are somebody's. */
function nobodys(stage: Stage): string[] {
  const instances = [...stage.backend.instances.values()];
  return instances.flatMap(({ ref, keeper }) => (keeper.policy?.spare === true ? [ref.sandboxId] : []));
}

test("one spare, two servers, and both are asked: one gets it, and the other another", () => {
  const stage = withSpare({ servers: 2 });
  const [spare] = spares(stage);
  const calls = [0, 1].map((i) => create(stage, stage.server(i)));
  stage.until(() => calls.every(({ state }) => state === "done"));
  const ids = calls.map(({ value }) => value);
  expect([new Set(ids).size, ids.includes(spare)]).toEqual([2, true]);
});

test("the server is killed between the commit and its word to the keeper: the next one says it", () => {
  const stage = withSpare();
  const [spare = ""] = spares(stage);
  create(stage);
  stage.until(() => spares(stage).length === 0);
  stage.server().kill();
  expect(nobodys(stage)).toEqual([spare]);
  stage.server().start();
  stage.until(() => nobodys(stage).length === 0);
  stage.advance(SECOND);
  expect(stage.timeline(spare)).toEqual(["prepared", "launching", "live", "created", "adopted"]);
});

test("the server is killed before the commit: the spare is the next one's to give away", () => {
  const stage = withSpare();
  const [spare] = spares(stage);
  create(stage);
  stage.server().kill();
  stage.server().start();
  stage.advance(SECOND);
  const again = create(stage);
  stage.until(() => again.state === "done");
  expect(again.value).toBe(spare);
});

test("rows from before it was given away: its owner keeps it, and nobody else gets it", () => {
  const stage = withSpare();
  const { universe } = stage;
  const backup = universe.database.backup();
  const owner = create(stage);
  stage.until(() => owner.state === "done");
  const id = owner.value ?? "";
  const work = stage.ask(async ({ sandboxes }) => {
    const { link } = await sandboxes.use(id);
    await link.run({ commandId: "mine", durationMs: 10, claimFence: 0 });
  });
  stage.until(() => work.state === "done");
  stage.server().kill();
  universe.database.restore(backup);
  universe.history.wentBack = true;
  stage.server().start();
  stage.until(() => stage.timeline(id).includes("recovered"));
  const another = create(stage);
  stage.until(() => another.state === "done");
  expect([
    another.value === id,
    universe.find(stage.leases().find(({ sandboxId }) => sandboxId === id)?.instanceId ?? "")?.keeper.alive,
  ]).toEqual([false, true]);
});

test("nobody asks for it, and its server is gone for ever: it ends by itself, soon", () => {
  const stage = withSpare();
  const [spare = ""] = spares(stage);
  stage.server().kill();
  const lives = () => stage.names().some((name) => name.includes(`${spare}-`));
  stage.advance(4 * MINUTE);
  expect(lives()).toBe(true);
  stage.advance(2 * MINUTE);
  expect(lives()).toBe(false);
});
