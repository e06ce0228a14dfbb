import { join } from "node:path";
import type { ClaimFenceRequest } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { atLeast, flag, integer, shape, strictObject, which } from "@holdfast/protocol/plain-check";
import { readSmallJson, writeSmallJson } from "../engine/small-file.ts";

/**
 * The work inside can write there what it likes: a number that no client ever comes near would shut all of them out,
 * and the next one must still be a number.
 */
const Recorded = shape(
  strictObject({
    fence: which(atLeast(0, integer), (fence) => fence <= 10 ** 12, "Too big: expected number to be <=10^12"),
    required: flag,
  }),
);

/**
 * The fence between clients: the number of a claim only grows, and work under a lower one than was ever seen is
 * refused, however late it arrives. Who holds the claim is the server's business. On disk, so that it holds for the
 * sandbox's next instance, too.
 */
export class Claims {
  readonly #file: string;
  #seen: ClaimFenceRequest;

  constructor(stateDir: string) {
    this.#file = join(stateDir, "claim-fence.json");
    this.#seen = readSmallJson(this.#file, Recorded) ?? { fence: 0, required: false };
  }

  /** The highest that was seen. */
  get fence(): number {
    return this.#seen.fence;
  }

  /** Work is about to be done under this number, or under none. */
  check(header: string | null): void {
    if (header === null) {
      if (this.#seen.required) throw claimed();
      return;
    }
    if (!/^\d{1,15}$/.test(header)) throw notANumber(header);
    const fence = Number(header);
    if (fence !== this.#seen.fence) this.set({ ...this.#seen, fence });
  }

  /** From now on lower numbers are refused; and, if `required`, work without one. May be said again. */
  set(wanted: ClaimFenceRequest): void {
    const { fence, required } = this.#seen;
    if (wanted.fence < fence) throw lost({ fence: wanted.fence, seen: fence });
    if (wanted.fence === fence && wanted.required === required) return;
    this.#seen = wanted;
    this.#record(wanted);
  }

  /** A full disk does not shut the holder out: the server says the number to each instance before any work. */
  #record(seen: ClaimFenceRequest): void {
    try {
      writeSmallJson(this.#file, seen);
    } catch (error) {
      process.stderr.write(`holdfast keeper: the claim's number could not be kept: ${String(error)}\n`);
    }
  }
}

function lost(numbers: { fence: number; seen: number }): HoldfastError {
  return new HoldfastError("claim_lost", "another client has claimed this sandbox since", {
    hint: "stop writing: look at who holds the claim, and take it over only if that is meant",
    started: "no",
    details: numbers,
  });
}

function claimed(): HoldfastError {
  return new HoldfastError("claim_lost", "this sandbox is claimed, and the request came without the claim", {
    hint: "claim the sandbox and send the claim with each request, or wait until it is released",
    started: "no",
  });
}

function notANumber(header: string): HoldfastError {
  return new HoldfastError("invalid_argument", `the claim's fence is not a number: ${header.slice(0, 40)}`, {
    started: "no",
  });
}
