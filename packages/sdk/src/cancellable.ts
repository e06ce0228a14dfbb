import { HoldfastError } from "@holdfast/protocol/errors";
import { sleep } from "./backoff.ts";

interface Cancellable<T> {
  /** The work; its signal aborts once the cancel went through and nobody waits for it any more, if that can be. */
  work: (unwanted: AbortSignal | undefined) => Promise<T>;
  /** Ends the work on the other side. `not_found` means that it has not arrived there yet. */
  cancel: () => Promise<unknown>;
  signal: AbortSignal | undefined;
  /** What is being cancelled, for the error if that fails. */
  what: string;
}

// Time for a request that is under way to arrive, so that its cancel finds something to end.
const ARRIVAL_MS = 2000;

/**
 * Work on the server that an `AbortSignal` really ends: the cancel is sent while the request is still open, because a
 * request that we dropped first might arrive after its own cancel. Rejects with the signal's reason, or with our own
 * error if the cancel itself failed and the work may still be going on.
 */
export async function cancellable<T>({ work, cancel, signal, what }: Cancellable<T>): Promise<T> {
  if (signal === undefined) return work(undefined);
  signal.throwIfAborted();
  const unwanted = new AbortController();
  const working = work(unwanted.signal);
  const aborted = whenAborted(signal);
  try {
    const first = await Promise.race([working.then((value) => ({ value })), aborted.promise]);
    if (first !== undefined) return first.value;
  } finally {
    aborted.forget();
  }
  let settled = false;
  working.then(
    () => (settled = true),
    () => (settled = true),
  );
  try {
    await cancelOnceArrived(cancel, () => settled);
  } catch (error) {
    throw notCancelled(what, error);
  } finally {
    unwanted.abort();
  }
  throw signal.reason;
}

async function cancelOnceArrived(cancel: () => Promise<unknown>, settled: () => boolean): Promise<void> {
  for (let waitedMs = 0, pauseMs = 10; !settled(); waitedMs += pauseMs, pauseMs *= 2) {
    try {
      await cancel();
      return;
    } catch (error) {
      const early = error instanceof HoldfastError && error.code === "not_found";
      if (!early || waitedMs >= ARRIVAL_MS) throw error;
      await sleep(pauseMs);
    }
  }
}

function notCancelled(what: string, cause: unknown): HoldfastError {
  return new HoldfastError("unavailable", `${what} could not be cancelled and may still be running`, {
    cause,
    hint: "Cancel it by its id once the server answers again.",
    started: "unknown",
  });
}

function whenAborted(signal: AbortSignal): { promise: Promise<undefined>; forget: () => void } {
  // A signal of our own that follows the caller's: Node warns of a leak when many calls listen to the same one.
  const own = AbortSignal.any([signal]);
  let onAbort: () => void = () => undefined;
  const promise = new Promise<undefined>((resolve) => {
    onAbort = () => resolve(undefined);
  });
  own.addEventListener("abort", onAbort, { once: true });
  return { promise, forget: () => own.removeEventListener("abort", onAbort) };
}
