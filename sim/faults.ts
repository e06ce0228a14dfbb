import type { Coverage } from "./coverage.ts";
import type { Rng } from "./rng.ts";

/**
 * Everything that goes wrong. A seed turns each of them on or off first and gives it a probability then, so that some
 * runs see one fault alone and some see many at once.
 */
const likeliest = {
  // Between a server and a provider.
  lost_request: 0.06,
  lost_reply: 0.08,
  duplicated_request: 0.06,
  /** Executed within the window that the provider promises. */
  delayed_request: 0.05,
  /** The same of a launch, which is what the window is for. */
  delayed_launch: 0.5,
  /** Executed after it: nothing promised that it would not be. */
  very_late_request: 0.03,
  slow_call: 0.06,
  // Between a server and a keeper.
  keeper_lost_request: 0.05,
  keeper_lost_reply: 0.06,
  keeper_slow: 0.05,
  // The store.
  store_busy: 0.03,
  store_error_before_commit: 0.03,
  store_error_after_commit: 0.04,
  store_slow: 0.04,
  // A backend.
  keeper_never_answers: 0.1,
  ignores_sigterm: 0.25,
  survives_stop: 0.15,
  pause_fails: 0.2,
  copy_fails: 0.3,
  observe_flaps: 0.08,
  discover_error: 0.15,
  discover_lies_empty: 0.1,
  ghost: 0.1,
  foreign_name_conflict: 0.08,
  lost_labels: 0.08,
  broken_image: 0.1,
  capacity_unmeasurable: 0.15,
  // Events, by weight among themselves.
  kill_server: 1,
  pause_server: 0.6,
  partition_store: 0.5,
  partition_provider: 0.4,
  partition_keepers: 0.4,
  clock_jump: 0.3,
  host_unreachable: 0.5,
  host_reboot: 0.3,
  disk_unusable: 0.2,
  capacity_change: 0.3,
  keeper_paused: 0.4,
  /** By hand, as with `docker pause`. */
  paused_outside: 0.3,
  out_of_memory: 0.5,
  foreign_instance: 0.3,
  restore_backup: 0.25,
} as const satisfies Record<string, number>;

export type Fault = keyof typeof likeliest;
export const faultNames = Object.keys(likeliest) as Fault[];

/** A fault that is not on for a seed has no chance at all. */
export type FaultPlan = Partial<Record<Fault, number>>;

export function planFaults(rng: Rng): FaultPlan {
  // A few seeds are calm: what goes wrong there is not a matter of faults.
  if (rng.chance(0.05)) return {};
  const share = rng.pick([0.15, 0.3, 0.5, 0.8]);
  const on = faultNames.filter(() => rng.chance(share));
  return Object.fromEntries(on.map((name) => [name, likeliest[name] * (0.3 + 0.7 * rng.next())]));
}

/** Says whether a fault happens now, and remembers that it did. */
export class Faults {
  readonly #rng: Rng;
  readonly #coverage: Coverage;
  #plan: FaultPlan;

  constructor(options: { plan: FaultPlan; rng: Rng; coverage: Coverage }) {
    this.#plan = options.plan;
    this.#rng = options.rng;
    this.#coverage = options.coverage;
  }

  get plan(): FaultPlan {
    return this.#plan;
  }

  /** `phase`: of the row that it hits, if it hits one. */
  strikes(name: Fault, phase?: string): boolean {
    if (!this.#rng.chance(this.#plan[name] ?? 0)) return false;
    this.note(name, phase);
    return true;
  }

  note(name: Fault, phase?: string): void {
    this.#coverage.sometimes(`fault ${name}`);
    if (phase !== undefined) this.#coverage.sometimes(`fault in phase ${phase} x ${name}`);
  }

  /** From now on nothing goes wrong. */
  heal(): void {
    this.#plan = {};
  }

  /** For a directed run: exactly this from now on. */
  become(plan: FaultPlan): void {
    this.#plan = plan;
  }
}
