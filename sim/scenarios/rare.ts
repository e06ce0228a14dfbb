import { isSpare } from "@holdfast/core";
import type { RunResult } from "../run.ts";
import { MINUTE, SECOND, Stage } from "./stage.ts";

/**
 * Scenario 12 at its narrowest: a turn begins on another server when the keeper has just promised to rest, and the order
 * to stop is not written yet. Which of the two writes comes first is the seed's choice.
 */
function lastMoment(seed: number): Stage {
  const stage = new Stage({ servers: 2, seed });
  const { keeper } = stage.running({ lifetimeSeconds: 60 });
  stage.until(() => keeper.quiescedAt !== undefined, 5 * MINUTE);
  const turn = stage.ask(({ turns }) => turns.begin("box", {}), stage.server(1));
  stage.universe.advance(MINUTE, () => turn.state !== "waiting");
  return stage;
}

/** Scenario 3: its create is on its way for minutes; somebody wants it stopped, and then gone at once. */
function lateCreate(seed: number): Stage {
  const stage = new Stage({ remote: true, seed, plan: { delayed_launch: 1 } });
  stage.launch();
  stage.until(() => stage.phase() === "creating");
  stage.ask(({ sandboxes }) => sandboxes.stop("box"));
  stage.universe.advance(MINUTE * 2);
  stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "force", waitMs: 0 }));
  stage.universe.advance(20 * MINUTE);
  return stage;
}

/** Two servers are asked for a sandbox at once, and both know of the same spare. */
function oneSpare(seed: number): Stage {
  const stage = new Stage({ servers: 2, spares: 1, seed });
  const create = (server: number) =>
    stage.ask(async ({ sandboxes }) => {
      await sandboxes.wake(await sandboxes.create({ provider: stage.backend.kind }));
    }, stage.server(server));
  create(0);
  stage.until(() => stage.leases().some((lease) => isSpare(lease) && lease.phase === "live"));
  // Whoever starts reaches all that there is.
  stage.server(1).kill();
  stage.server(1).start();
  stage.advance(SECOND);
  const calls = [create(0), create(1)];
  stage.universe.advance(MINUTE, () => calls.every(({ state }) => state !== "waiting"));
  return stage;
}

/** What chance alone would bring about too seldom to rely on. Each seed has its own orders and delays. */
export const rare = { "last-moment": lastMoment, "late-create": lateCreate, "one-spare": oneSpare };

export function judgeRare(name: keyof typeof rare, seed: number): RunResult {
  const { universe } = rare[name](seed);
  const { steps, now: virtualMs } = universe.scheduler;
  const { violation } = universe.judge;
  return { seed, steps, virtualMs, hash: "", violation, tail: [], counts: universe.coverage.counts() };
}
