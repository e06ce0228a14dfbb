import type { EndCause } from "@holdfast/protocol";
import type { Admission } from "../admission.ts";
import type { Engine } from "../engine/engine.ts";
import type { Parts } from "../parts.ts";
import type { Timers } from "../terminal/timers.ts";
import { Activity } from "./activity.ts";
import { Claims } from "./claims.ts";
import { Deadman } from "./deadman.ts";
import { Door } from "./door.ts";
import { Gate } from "./gate.ts";
import { Watches } from "./watches.ts";

export interface LifecycleOptions extends Pick<Parts, "sessions" | "terminals"> {
  readonly engine: Engine;
  readonly admission: Admission;
  readonly timers: Timers;
  /** It is time to end, whatever the server says. */
  onEnd(cause: EndCause): void;
}

/** What decides how long the instance lives: who uses it, who may, and whether there is still a server. */
export class Lifecycle {
  readonly gate: Gate;
  readonly claims: Claims;
  readonly activity: Activity;
  readonly deadman: Deadman;
  readonly watches: Watches;
  readonly door: Door;

  constructor({ engine, sessions, terminals, admission, timers, onEnd }: LifecycleOptions) {
    const elapsed = () => timers.elapsed();
    this.gate = new Gate({ elapsed, use: engine.use });
    this.claims = new Claims(engine.boot.stateDir);
    this.activity = new Activity({ engine, sessions, terminals, gate: this.gate, elapsed });
    this.deadman = new Deadman({ timers, activity: this.activity, fence: () => admission.fence, onEnd });
    this.watches = new Watches(this.deadman);
    this.door = new Door(this);
  }

  /** May be called twice. */
  close(): void {
    this.deadman.close();
    this.watches.close();
  }
}
