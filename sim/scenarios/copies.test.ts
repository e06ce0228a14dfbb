import { expect, test } from "bun:test";
import { MINUTE, SECOND, Stage } from "./stage.ts";

/** What is there of copies, on the backend and in the store: nothing half made, nothing without the other. */
function left(stage: Stage): { drafts: number; kept: number; rows: string[] } {
  const { drafts, kept } = stage.backend;
  return { drafts: drafts.size, kept: kept.size, rows: stage.snapshots() };
}

/** A server that dies so many steps after it was asked, and the next. `over`: it had answered before. */
function deathAfter(stage: Stage, steps: number, isOver: () => boolean): "over" | "cut off" {
  const first = stage.universe.scheduler.steps;
  stage.universe.advance(5 * MINUTE, () => isOver() || stage.universe.scheduler.steps - first >= steps);
  const wasOver = isOver();
  stage.server().kill();
  stage.advance(SECOND);
  stage.server().start();
  stage.advance(SECOND);
  return wasOver ? "over" : "cut off";
}

test("a server dies after every step of a copy: it is whole or failed, and its record says so", () => {
  const ends = new Set<string>();
  for (let steps = 1; ; steps++) {
    const stage = new Stage({ copies: true });
    stage.running();
    const call = stage.ask(async ({ sandboxes, snapshots }) => {
      const { id } = await snapshots.begin(await sandboxes.get("box"), {}, { origin: "request" });
      return snapshots.settled(id);
    });
    const how = deathAfter(stage, steps, () => call.state !== "waiting");
    stage.advance(2 * MINUTE);
    const { drafts, kept, rows } = left(stage);
    expect([drafts, kept]).toEqual([0, rows.filter((phase) => phase === "ready").length]);
    expect(rows.filter((phase) => phase !== "ready" && phase !== "failed")).toEqual([]);
    ends.add(rows.join());
    if (how === "over") break;
  }
  expect([...ends].sort()).toEqual(["", "failed", "ready"]);
});

test("a server dies after every step of a fork, which is sent again: two forks, one moment, and no copy is left", () => {
  for (let steps = 1; ; steps++) {
    const stage = new Stage({ copies: true });
    stage.running();
    const fork = () =>
      stage.ask(({ forks }) =>
        forks.fork("box", { count: 2, name: "child" }, { asked: {}, idempotencyKey: "once" }),
      );
    const first = fork();
    const how = deathAfter(stage, steps, () => first.state !== "waiting");
    const again = fork();
    stage.until(() => again.state !== "waiting", 5 * MINUTE);
    expect([steps, again.state, again.code, stage.names().length]).toEqual([steps, "done", undefined, 3]);
    expect(new Set(again.value?.map(({ sandbox }) => sandbox.spec.fromSnapshot)).size).toBe(1);
    stage.advance(2 * MINUTE);
    expect(left(stage)).toEqual({ drafts: 0, kept: 0, rows: [] });
    if (how === "over") break;
  }
});

test("a fork that nobody sends again leaves no copy, either", () => {
  const stage = new Stage({ copies: true });
  stage.running();
  stage.ask(({ forks }) => forks.fork("box", { count: 1 }, { asked: {}, idempotencyKey: "once" }));
  stage.until(() => stage.backend.kept.size === 1);
  stage.server().kill();
  stage.advance(SECOND);
  stage.server().start();
  stage.advance(3 * MINUTE);
  expect(left(stage)).toEqual({ drafts: 0, kept: 0, rows: [] });
});
