import { HoldfastError } from "@holdfast/protocol";

/** Faults to be had, each until it is taken back. `lostAnswer`: the work is done, the reply is not received. */
export interface Faults {
  /** Nothing reaches it, and nothing is done: every call says `provider_unavailable`. */
  backend?: "unreachable";
  launch?: "fails" | "lostAnswer" | "diskFull";
  stop?: "fails" | "lostAnswer" | "survives";
  /** `notFound`: the backend answers from a cache that has never heard of the instance. */
  observe?: "fails" | "notFound";
  /** Also for a list that came only in part: that is an error by contract. */
  discover?: "fails";
  removeDisk?: "fails";
  pause?: "fails";
  capacity?: "unknown";
}

export function unavailable(what: string): HoldfastError {
  return new HoldfastError("unavailable", what);
}

export function unreachable(): HoldfastError {
  return new HoldfastError("provider_unavailable", "the fake backend cannot be reached");
}

export function diskFull(): HoldfastError {
  return new HoldfastError("host_storage_unusable", "the fake's disk is full", {
    details: { errno: "ENOSPC" },
  });
}

export function taken(message: string): HoldfastError {
  return new HoldfastError("already_exists", message, { started: "no" });
}
