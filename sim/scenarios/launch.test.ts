import { expect, test } from "bun:test";
import { HOUR, MINUTE, SECOND, Stage } from "./stage.ts";

test("scenario 1: a crash after the reservation: nothing was made, and it ends in `never_requested`", () => {
  const stage = new Stage();
  stage.launch();
  stage.until(() => stage.phase() === "reserved");
  stage.server().kill();
  stage.advance(MINUTE + SECOND);
  stage.server().start();
  stage.until(() => stage.phase() === "gone");
  expect([stage.lease().evidence?.kind, stage.lease().createSentAt, stage.names()]).toEqual([
    "never_requested",
    null,
    [],
  ]);
});

test("scenario 2: a create whose answer was lost is adopted under the same id, and there is one instance", () => {
  const stage = new Stage({ remote: true });
  stage.launch();
  stage.until(() => stage.phase() === "creating");
  stage.once("lost_reply");
  stage.until(() => stage.phase() === "live");
  expect([stage.leases().length, stage.names().length]).toEqual([1, 1]);
});

const delays = [1, 3, 4, 5].flatMap((minutes) => [minutes - 0.1, minutes + 0.1]);
test.each(delays)(
  "scenario 3: a create that arrives %d minutes late is never a second one at work",
  (minutes) => {
    const stage = new Stage({ remote: true });
    stage.launch();
    stage.until(() => stage.leases().some(({ phase }) => phase === "creating"));
    const { instanceId, sandboxId, generation, installationId, secret, fence } = stage.lease();
    const ref = { instanceId, sandboxId, generation, installationId };
    stage.backend.unreachableUntil = stage.universe.scheduler.now + 20 * SECOND;
    stage.ask(({ sandboxes }) => sandboxes.stop("box"));
    stage.advance(minutes * MINUTE);
    if (!stage.backend.instances.has(`hf-${sandboxId}-g${generation}`)) {
      const plan = { spec: {}, hostname: "late", secret, fence, lifetimeSeconds: 1800 };
      stage.backend.launch(ref, plan, { isLate: minutes > 5 });
    }
    stage.advance(20 * MINUTE);
    expect([stage.names(), stage.lease().phase]).toEqual([[], "gone"]);
  },
);

test("scenario 4: two servers, the first paused past its ticket in the middle of a launch: nothing happens twice", () => {
  const stage = new Stage({ servers: 2 });
  const call = stage.launch();
  stage.until(() => stage.phase() === "creating");
  stage.universe.scheduler.pause(stage.server(0).actor, 90 * SECOND);
  stage.until(() => call.state !== "waiting", 10 * MINUTE);
  stage.advance(MINUTE);
  // The second one accepts what the first one made, and finishes the launch; the first one changes nothing.
  expect([stage.names().length, stage.leases().length, stage.phase()]).toEqual([1, 1, "live"]);
});

test("scenario 5: a keeper that never answers is stopped at its deadline, and the next call launches anew", () => {
  const stage = new Stage({ plan: { keeper_never_answers: 1 } });
  const call = stage.launch();
  stage.until(() => call.state !== "waiting", 10 * MINUTE);
  stage.until(() => stage.lease().phase === "gone", 10 * MINUTE);
  expect(stage.lease()).toMatchObject({ stopReason: "startup_deadline", evidence: { kind: "exited" } });
  stage.faults({});
  expect(stage.running().ref.generation).toBe(2);
});

test("a keeper that never answers three times ends in `failed`, not in a loop", () => {
  const stage = new Stage({ plan: { keeper_never_answers: 1 } });
  for (let i = 0; i < 5; i++) {
    const call = stage.launch();
    stage.until(() => call.state !== "waiting", HOUR);
    stage.until(() => stage.lease().phase === "gone", HOUR);
  }
  expect(stage.leases().length).toBe(3);
});

test("scenario 6: a keeper that two servers reach works for the current fence only", () => {
  const stage = new Stage({ servers: 2 });
  const { keeper } = stage.running();
  const other = stage.ask(({ sandboxes }) => sandboxes.use("box"), stage.server(1));
  stage.until(() => other.state !== "waiting");
  expect([keeper.contacts.size, keeper.fence, other.state]).toEqual([2, stage.lease().fence, "done"]);
  const stale = { commandId: "old", durationMs: 1, fence: keeper.fence - 1, claimFence: 0 };
  expect(() => keeper.start(stale)).toThrow("older");
});

test("scenario 9: a crash between the answer of the create and its connection: the restart goes on with that one", () => {
  const stage = new Stage();
  stage.launch();
  stage.until(() => stage.phase() === "starting");
  stage.server().kill();
  stage.advance(5 * SECOND);
  stage.server().start();
  stage.until(() => stage.lease().phase === "live");
  expect([stage.leases().length, stage.names().length]).toEqual([1, 1]);
});

test("scenario 10: a deletion while it is created wins: it is never admitted, also not by a repeated launch", () => {
  const stage = new Stage({ remote: true });
  stage.launch();
  stage.until(() => stage.phase() === "creating");
  stage.once("slow_call");
  const gone = stage.ask(({ sandboxes }) =>
    sandboxes.delete("box", { mode: "graceful", waitMs: 20 * MINUTE }),
  );
  const again = stage.ask(({ sandboxes }) => sandboxes.use("box"));
  stage.until(() => gone.state !== "waiting" && again.state !== "waiting", HOUR);
  expect([gone.value, stage.lease().admittedAt, stage.names()]).toEqual(["gone", null, []]);
});

test("scenario 11: what came alive in the last moment goes on, though the write of it was lost", () => {
  const stage = new Stage();
  stage.launch();
  stage.until(() => [...stage.backend.instances.values()].some(({ keeper }) => keeper.isAdmitted));
  stage.once("store_error_before_commit");
  stage.until(() => stage.phase() === "live", 10 * SECOND);
  expect([stage.leases().length, stage.names().length]).toEqual([1, 1]);
});
