import { expect, test } from "bun:test";
import { HOUR, MINUTE, SECOND, Stage } from "./stage.ts";

function paused(stage: Stage, policy: Record<string, unknown> = {}): ReturnType<Stage["running"]> {
  const instance = stage.running(policy);
  stage.ask(({ sandboxes }) => sandboxes.pause("box"));
  stage.until(() => stage.phase() === "paused");
  expect(instance.keeper.isFrozen).toBe(true);
  return instance;
}

test("a server dies after every step of a pause: the next finishes it, and a use resumes the same instance", () => {
  for (let afterSteps = 1; ; afterSteps++) {
    const stage = new Stage();
    const { keeper } = stage.running();
    const first = stage.universe.scheduler.steps;
    const call = stage.ask(({ sandboxes }) => sandboxes.pause("box"));
    stage.universe.advance(
      MINUTE,
      () => call.state !== "waiting" || stage.universe.scheduler.steps - first >= afterSteps,
    );
    const isOver = call.state !== "waiting";
    stage.server().kill();
    stage.advance(SECOND);
    stage.server().start();
    stage.advance(MINUTE);
    // Either it was never written, or it is done.
    expect([stage.phase(), keeper.isFrozen]).toEqual(keeper.isFrozen ? ["paused", true] : ["live", false]);
    const use = stage.ask(({ sandboxes }) => sandboxes.use("box"));
    stage.until(() => use.state !== "waiting", MINUTE);
    expect([use.state, stage.phase(), stage.leases().length, keeper.isFrozen]).toEqual([
      "done",
      "live",
      1,
      false,
    ]);
    if (isOver) break;
  }
});

test("the hard end of its life comes also to what is paused, and so does idleness", () => {
  const hard = new Stage();
  paused(hard, { maxLifetimeSeconds: 300 });
  hard.until(() => hard.phase() === "gone", 10 * MINUTE);
  expect(hard.lease().stopReason).toBe("max_lifetime");
  const idle = new Stage();
  paused(idle, { lifetimeSeconds: 60 });
  idle.until(() => idle.phase() === "gone", 10 * MINUTE);
  expect(idle.lease().stopReason).toBe("idle");
});

test("one that died while it was paused is explained by the use that needs it, and launched anew", () => {
  const stage = new Stage();
  stage.backend.end(paused(stage), "killed by hand");
  const use = stage.ask(({ sandboxes }) => sandboxes.use("box"));
  stage.until(() => use.state !== "waiting", HOUR);
  expect([use.state, stage.leases().map(({ phase }) => phase)]).toEqual(["done", ["gone", "live"]]);
});

test("without any server a paused one takes no time: its keeper counts only what it ran", () => {
  const stage = new Stage();
  const { keeper } = paused(stage, { lifetimeSeconds: 900, onIdle: "keep" });
  stage.server().kill();
  stage.advance(24 * HOUR);
  expect([keeper.alive, keeper.isFrozen]).toEqual([true, true]);
  stage.server().start();
  const use = stage.ask(({ sandboxes }) => sandboxes.use("box"));
  stage.until(() => use.state !== "waiting", MINUTE);
  expect([use.state, keeper.alive, stage.leases().length]).toEqual(["done", true, 1]);
});

test("two servers: what one pauses, the other does not take for lost", () => {
  const stage = new Stage({ servers: 2 });
  const { keeper } = stage.running();
  const both = stage.ask(({ sandboxes }) => sandboxes.use("box"), stage.server(1));
  stage.until(() => both.state === "done");
  stage.ask(({ sandboxes }) => sandboxes.pause("box"));
  stage.until(() => stage.phase() === "paused");
  stage.advance(10 * MINUTE);
  expect([stage.phase(), keeper.isFrozen]).toEqual(["paused", true]);
  const use = stage.ask(({ sandboxes }) => sandboxes.use("box"), stage.server(1));
  stage.until(() => use.state !== "waiting", MINUTE);
  expect([use.state, stage.leases().length]).toEqual(["done", 1]);
});

test("two servers: what one paused and the other resumed is reached anew by the first, and idles away there", () => {
  const stage = new Stage({ servers: 2 });
  const { keeper } = stage.running({ lifetimeSeconds: 60 });
  const pause = stage.ask(({ sandboxes }) => sandboxes.pause("box"));
  stage.until(() => pause.state === "done");
  const resume = stage.ask(({ sandboxes }) => sandboxes.resume("box"), stage.server(1));
  stage.until(() => resume.state === "done");
  const use = stage.ask(({ sandboxes }) => sandboxes.use("box"));
  stage.until(() => use.state !== "waiting", 5 * SECOND);
  expect([use.state, stage.leases().length, keeper.contacts.size]).toEqual(["done", 1, 2]);
  // Alone, so that nobody else can judge it.
  stage.server(1).kill();
  stage.until(() => stage.phase() === "gone", 5 * MINUTE);
  expect(stage.lease().stopReason).toBe("idle");
});
