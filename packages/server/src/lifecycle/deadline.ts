import type { Clock } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";

/** Runs `work` for at most `ms`: then its signal aborts, and the call fails whether `work` listens or not. */
export async function within<T>(
  clock: Clock,
  { ms, closing }: { ms: number; closing?: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const done = new AbortController();
  const signal = closing === undefined ? over.signal : AbortSignal.any([over.signal, closing]);
  const timeout = clock.sleep(ms, done.signal).then((): never | Promise<never> => {
    if (done.signal.aborted) return new Promise<never>(() => {});
    const error = tookTooLong(ms);
    over.abort(error);
    throw error;
  });
  try {
    return await Promise.race([work(signal), timeout]);
  } finally {
    done.abort();
  }
}

/** Nobody knows whether it was done. */
function tookTooLong(ms: number): HoldfastError {
  return new HoldfastError("unavailable", `no answer within ${Math.round(ms / 1000)} s`, {
    started: "unknown",
  });
}
