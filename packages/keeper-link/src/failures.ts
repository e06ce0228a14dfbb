import { HoldfastError, PROTOCOL_VERSION } from "@holdfast/protocol";

/** `started`: whether the work that was asked for may have been begun. */
export function lost(cause: unknown, started: "no" | "yes" | "unknown"): HoldfastError {
  return new HoldfastError("keeper_lost", "the sandbox's keeper went away in the middle of the call", {
    cause,
    started,
    retryable: true,
    hint:
      started === "no"
        ? "nothing was started: try again"
        : "ask for the command by its id to see what became of it before you run it again",
  });
}

export function garbled(detail: string): HoldfastError {
  return new HoldfastError("internal", "the sandbox's keeper gave an answer that makes no sense", {
    details: { detail: detail.slice(0, 1000) },
    started: "unknown",
    hint: "the workload may have tampered with its keeper: look at the timeline, or recreate the sandbox",
  });
}

export function wrongVersion(found: string): HoldfastError {
  return new HoldfastError(
    "unsupported",
    `the keeper speaks protocol ${found}, this server ${PROTOCOL_VERSION}`,
    {
      hint: "stop the sandbox and use it again: it comes back with this version's keeper and its files",
    },
  );
}

/** What a newer server wants of an older keeper. The instance goes on, and can be looked at and stopped. */
export function unsupported(what: string, cause: unknown): HoldfastError {
  return new HoldfastError(
    "unsupported",
    `the sandbox's keeper is older than this server and cannot ${what}`,
    {
      hint: "stop the sandbox and use it again: it comes back with this version's keeper and its files",
      started: "no",
      cause,
    },
  );
}
