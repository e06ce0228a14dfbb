import type { Provider } from "@holdfast/core";
import type { Meters } from "./meters.ts";
import type { Tracer } from "./trace.ts";

/** The calls that ask a backend for something. What it tells by itself takes as long as it likes. */
const calls = [
  ...([
    "prepare",
    "launch",
    "observe",
    "stop",
    "pause",
    "resume",
    "removeDisk",
    "discover",
    "capacity",
  ] as const),
];

type Call = (...args: unknown[]) => Promise<unknown>;

/** The same provider; each of its calls is timed, and is a span where a traced request waits for it. */
export function meteredProvider<P extends Provider>(
  provider: P,
  { meters, tracer }: { meters: Meters; tracer?: Tracer | undefined },
): P {
  const timed = async (name: string, call: Call, args: unknown[]): Promise<unknown> => {
    const startedAt = performance.now();
    try {
      return await call.apply(provider, args);
    } catch (error) {
      meters.providerFailures.add(1, provider.kind, name);
      throw error;
    } finally {
      meters.providerSeconds.observe((performance.now() - startedAt) / 1000, provider.kind, name);
    }
  };
  const own = new Map<string | symbol, Call>();
  for (const name of calls) {
    const call = provider[name] as Call | undefined;
    if (call === undefined) continue;
    const attributes = { "holdfast.provider": provider.kind };
    const options = { name: `${provider.kind} ${name}`, kind: "client", attributes } as const;
    own.set(name, (...args) =>
      tracer === undefined ? timed(name, call, args) : tracer.within(options, () => timed(name, call, args)),
    );
  }
  return new Proxy(provider, {
    get(target, name) {
      const value = own.get(name) ?? target[name as keyof P];
      // Bound: a private field is the provider's own, and not its proxy's.
      return typeof value === "function" && !own.has(name) ? value.bind(target) : value;
    },
  });
}
