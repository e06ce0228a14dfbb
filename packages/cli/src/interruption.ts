/** The signals that end us, turned into something that work in progress can answer to. */
export interface Interruption {
  /** Aborts at the first signal. */
  signal: AbortSignal;
  /** What a signal that came makes our exit code. */
  exitCode(): number | undefined;
  /** Back to the default: a signal ends us at once. */
  forget(): void;
}

// As a shell reports them: 128 + the number of the signal.
const exitCodeOf = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** From now on the first signal aborts; a second one leaves at once, whatever is still to be done. */
export function listenForSignals(): Interruption {
  const abort = new AbortController();
  let exitCode: number | undefined;
  const listeners = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((name) => {
    const listener = (): void => {
      if (exitCode !== undefined) process.exit(exitCode);
      exitCode = exitCodeOf[name];
      abort.abort(new Error(name));
    };
    process.on(name, listener);
    return () => process.off(name, listener);
  });
  return {
    signal: abort.signal,
    exitCode: () => exitCode,
    forget: () => {
      for (const forget of listeners) forget();
    },
  };
}

/** The work's exit code; a signal's, if that is what ended it. */
export async function unlessInterrupted(
  interruption: Interruption,
  work: () => Promise<number>,
): Promise<number> {
  try {
    const exitCode = await work();
    return interruption.exitCode() ?? exitCode;
  } catch (error) {
    const exitCode = interruption.exitCode();
    if (exitCode !== undefined && error === interruption.signal.reason) return exitCode;
    throw error;
  }
}
