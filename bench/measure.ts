/** Measured times in ms. */
export interface Times {
  readonly p50: number;
  readonly p95: number;
}

/**
 * Takes turns: one round of each contender, again and again, so that whatever else the machine does meanwhile hits all
 * of them alike. Every contender must do the same work. A round is one call, or several after
 * a rest, where a call leaves work behind that would be counted as the next contender's.
 */
export async function interleaved<K extends string>(
  contenders: Record<K, () => Promise<unknown>>,
  options: {
    rounds: number;
    pauseMs?: number;
    callsInARow?: number;
    restMs?: number;
    /** Rounds before those that count, so that all code is loaded. */
    warmUps?: number;
    /** After each call, not measured: what it has made may go. */
    tidy?: () => Promise<unknown>;
  },
): Promise<Record<K, Times>> {
  const names = Object.keys(contenders) as K[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  const { warmUps = 5, tidy } = options;
  for (let i = 0; i < warmUps; i++)
    for (const name of names) {
      await contenders[name]();
      await tidy?.();
    }
  for (let round = 0; round < options.rounds; round++) {
    for (const name of names) {
      if (options.restMs !== undefined) await Bun.sleep(options.restMs);
      for (let call = 0; call < (options.callsInARow ?? 1); call++) {
        if (options.pauseMs !== undefined) await Bun.sleep(options.pauseMs);
        const before = performance.now();
        await contenders[name]();
        samples[name].push(performance.now() - before);
        await tidy?.();
      }
    }
  }
  return Object.fromEntries(names.map((name) => [name, timesOf(samples[name])])) as Record<K, Times>;
}

/** Calls per second with so many callers, each of which begins the next when its last is answered. */
export async function rate(
  work: () => Promise<unknown>,
  options: { callers: number; seconds: number },
): Promise<number> {
  const until = performance.now() + options.seconds * 1000;
  let calls = 0;
  const caller = async () => {
    while (performance.now() < until) {
      await work();
      calls++;
    }
  };
  await Promise.all(Array.from({ length: options.callers }, caller));
  return calls / options.seconds;
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

function timesOf(samples: number[]): Times {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { p50: at(0.5), p95: at(0.95) };
}
