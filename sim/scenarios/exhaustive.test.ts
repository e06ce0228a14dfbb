import { expect, test } from "bun:test";
import { HOUR, MINUTE, SECOND, Stage } from "./stage.ts";

/** Choices that are tried in every combination; after them the first of those that could be next is next. */
const DEPTH = 10;
/** Orders that are tried. More of them than this differ only in who reads first. */
const MOST_ORDERS = 600;

/** Goes through all orders, like an odometer: the last choice that has another value gets it. */
class Orders {
  #script: number[] = [];
  #counts: number[] = [];
  #at = 0;

  /** A function for one run. */
  begin(): (count: number) => number {
    this.#counts = [];
    this.#at = 0;
    return (count) => {
      const at = this.#at++;
      if (at >= DEPTH) return 0;
      this.#counts[at] = count;
      return this.#script[at] ?? 0;
    };
  }

  /** `false`: that was the last. */
  next(): boolean {
    for (let at = Math.min(this.#counts.length, DEPTH) - 1; at >= 0; at--) {
      const value = (this.#script[at] ?? 0) + 1;
      if (value >= (this.#counts[at] ?? 0)) continue;
      this.#script = [...Array.from({ length: at }, (_, i) => this.#script[i] ?? 0), value];
      return true;
    }
    return false;
  }
}

test("scenario 57: two servers, one sandbox that one uses and the other deletes: every order of the first choices", () => {
  const orders = new Orders();
  let runs = 0;
  do {
    let choose: (count: number) => number = () => 0;
    const stage = new Stage({ servers: 2, choose: (count) => choose(count) });
    stage.running();
    choose = orders.begin();
    const use = stage.ask(({ sandboxes }) => sandboxes.use("box"), stage.server(0));
    const gone = stage.ask(
      ({ sandboxes }) => sandboxes.delete("box", { mode: "graceful", waitMs: MINUTE }),
      stage.server(1),
    );
    stage.until(() => use.state !== "waiting" && gone.state !== "waiting", HOUR);
    expect([gone.value, stage.names()]).toEqual(["gone", []]);
    runs++;
  } while (runs < MOST_ORDERS && orders.next());
  expect(runs).toBeGreaterThan(100);
});

/** A life from its creation to its end, with a server that dies after so many steps. */
function lifeWithADeath(options: { seed: number; afterSteps: number; servers: number }): "over" | "went on" {
  const stage = new Stage({ seed: options.seed, servers: options.servers });
  const first = stage.universe.scheduler.steps;
  const isTime = () => stage.universe.scheduler.steps - first >= options.afterSteps;
  stage.launch({ lifetimeSeconds: 60 });
  stage.universe.advance(10 * SECOND, isTime);
  if (!isTime()) stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "graceful", waitMs: 0 }));
  stage.universe.advance(10 * SECOND, isTime);
  const wentOn = isTime();
  stage.universe.timerGrainMs = 10 * SECOND;
  stage.server().kill();
  stage.advance(SECOND);
  stage.server().start();
  stage.advance(2 * MINUTE);
  stage.ask(({ sandboxes }) => sandboxes.delete("box", { mode: "graceful", waitMs: 0 }));
  stage.advance(5 * MINUTE);
  expect([stage.names(), stage.backend.disks.size, stage.universe.book.standing()]).toEqual([[], 0, []]);
  return wentOn ? "went on" : "over";
}

test.each([1, 2])(
  "scenario 57: a server dies after every step of a life (%d of them)",
  (servers) => {
    let deaths = 0;
    // Each seed has its own orders, and its own answer to what of the sent still arrives.
    for (const seed of servers === 1 ? [1, 2, 3] : [1]) {
      for (let afterSteps = 1; ; afterSteps++, deaths++) {
        if (lifeWithADeath({ seed, afterSteps, servers }) === "over") break;
      }
    }
    expect(deaths).toBeGreaterThan(40);
  },
  120_000,
);
