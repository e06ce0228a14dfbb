import type { AdmitRequest, KeeperBoot } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { realTimers, type Timers } from "./terminal/timers.ts";

// A server that launched us and died is not coming back for us: another one launches its own instance.
const ADMISSION_MS = 60_000;
// Time counts in steps that really ran: a laptop's sleep or a paused container adds at most one.
const STEP_MS = 1_000;

/** The gate and the fence: nothing runs before the server has admitted us, and nothing for a server that was replaced. */
export class Admission {
  readonly #boot: KeeperBoot;
  readonly #timers: Timers;
  #admitted = false;
  #isOwned = false;
  #closed = false;
  #fence = 0;
  #stopWatching: (() => void) | undefined;

  constructor(boot: KeeperBoot, timers: Timers = realTimers) {
    this.#boot = boot;
    this.#timers = timers;
  }

  get admitted(): boolean {
    return this.#admitted;
  }

  /** Somebody has it, or had: it is no spare, and never will be again. */
  get isOwned(): boolean {
    return this.#isOwned;
  }

  get fence(): number {
    return this.#fence;
  }

  admit(request: AdmitRequest): void {
    const { instanceId, generation } = this.#boot;
    if (request.instanceId !== instanceId || request.generation !== generation) {
      const message = `this is instance ${instanceId}, generation ${generation}, not ${request.instanceId}, generation ${request.generation}`;
      throw new HoldfastError("wrong_state", message, { hint: "observe the instance again" });
    }
    this.#see(request.fence);
    if (request.spare && this.#isOwned) {
      throw new HoldfastError("wrong_state", "the instance was given away, and is no spare any more", {
        hint: "read its lease again",
      });
    }
    this.#admitted = true;
    this.#isOwned ||= !request.spare;
  }

  /** Reads a request's fence. Once admitted, every request has to carry one. */
  checkFence(header: string | null): void {
    if (header === null) {
      if (!this.#admitted) return;
      throw new HoldfastError("invalid_argument", "the request carries no fence", { started: "no" });
    }
    if (!/^\d{1,15}$/.test(header)) {
      throw new HoldfastError("invalid_argument", `the fence is not a number: ${header.slice(0, 40)}`, {
        started: "no",
      });
    }
    this.#see(Number(header));
  }

  checkAdmitted(): void {
    if (this.#closed) {
      throw new HoldfastError("wrong_state", "the instance is being stopped", {
        hint: "start the sandbox again",
        started: "no",
      });
    }
    if (this.#admitted) return;
    throw new HoldfastError("wrong_state", "the instance has not been admitted yet", {
      hint: "the server admits it after it has re-read the lease; try again in a moment",
      retryable: true,
      started: "no",
    });
  }

  /** Calls back if nobody admits us in time. */
  watch(onMissed: () => void): void {
    let waitedMs = 0;
    const wait = () => {
      this.#stopWatching = this.#timers.after(STEP_MS, () => {
        waitedMs += STEP_MS;
        if (this.#admitted) return;
        if (waitedMs >= ADMISSION_MS) onMissed();
        else wait();
      });
    };
    wait();
  }

  /** From now on all work is refused. May be called twice. */
  close(): void {
    this.#closed = true;
    this.#stopWatching?.();
  }

  #see(fence: number): void {
    if (fence < this.#fence) {
      throw new HoldfastError(
        "fence_stale",
        `the fence ${fence} is older than ${this.#fence}, which was seen before`,
        {
          hint: "another server has taken over this instance",
          started: "no",
          details: { fence, seen: this.#fence },
        },
      );
    }
    this.#fence = fence;
  }
}
