import { type CallOptions, HoldfastError, Sandbox } from "holdfast";

/** What a client was told, to be compared with the world afterwards. */
export interface Told {
  readonly name: string;
  id?: string;
  deleted?: "asked" | "acknowledged";
  /** Lines that an acknowledged command wrote, and lines of commands whose end nobody saw. */
  readonly written: string[];
  readonly perhaps: string[];
}

/** A client that is not told enough to know what happened is a failure, except where two of them contradict each other. */
const FAIR_AMONG_RIVALS = ["wrong_state", "keeper_lost", "cleanup_pending"];

/** Mulberry32: small, and the same everywhere for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Journey {
  readonly name: string;
  readonly random: () => number;
  readonly at: CallOptions;
}

/** One sandbox from its creation on, perhaps to its deletion, by clients that go on when the server does not answer. */
export async function travel(journey: Journey): Promise<Told> {
  const { name, random } = journey;
  const told: Told = { name, written: [], perhaps: [] };
  const sandbox = await create(journey, told);
  if (sandbox === undefined) return told;
  const acts = 1 + Math.floor(random() * 5);
  for (let i = 0; i < acts; i++) {
    const line = `${name}-${i}`;
    if (random() < 0.3) await rivals(sandbox, told, { random, line });
    else await act(sandbox, told, { random, line });
  }
  if (random() < 0.6) await remove(sandbox, told);
  return told;
}

async function create({ name, random, at }: Journey, told: Told): Promise<Sandbox | undefined> {
  const spec = { name, network: random() < 0.2 ? "full" : "none" } as const;
  const kind = random();
  const idempotencyKey = `key-${name}`;
  if (kind < 0.2) {
    const both = await Promise.all([1, 2].map(() => Sandbox.create(spec, { ...at, idempotencyKey })));
    if (both[0]?.id !== both[1]?.id) throw new Error(`${name}: one key made two sandboxes`);
    told.id = both[0]?.id ?? "";
    return both[0];
  }
  const sandbox = await Sandbox.create(spec, { ...at, wait: kind > 0.4 });
  told.id = sandbox.id;
  if (kind > 0.3) return sandbox;
  // While it is still being created.
  await remove(sandbox, told);
  return undefined;
}

async function act(
  sandbox: Sandbox,
  told: Told,
  { random, line }: { random: () => number; line: string },
): Promise<void> {
  const choice = random();
  if (choice < 0.2) await sandbox.stop();
  else if (choice < 0.4) await sandbox.start();
  else await write(sandbox, told, line);
}

/** A command that was ended before it was done, as a stop does it. */
class Ended extends Error {}

/** Several at once on one sandbox: each may lose against another, but none may be told nonsense. */
async function rivals(
  sandbox: Sandbox,
  told: Told,
  { random, line }: { random: () => number; line: string },
): Promise<void> {
  const calls = Array.from({ length: 3 }, (_, i) => act(sandbox, told, { random, line: `${line}-${i}` }));
  for (const { reason } of (await Promise.allSettled(calls)).filter((call) => call.status === "rejected")) {
    const isFair = reason instanceof HoldfastError && FAIR_AMONG_RIVALS.includes(reason.code);
    if (!(isFair || reason instanceof Ended)) throw reason;
  }
}

async function write(sandbox: Sandbox, told: Told, line: string): Promise<void> {
  told.perhaps.push(line);
  const { exitCode } = await sandbox.exec(`echo ${line} >> /workspace/lines`);
  if (exitCode !== 0) throw new Ended(`${line}: exit code ${exitCode}`);
  told.perhaps.splice(told.perhaps.indexOf(line), 1);
  told.written.push(line);
}

async function remove(sandbox: Sandbox, told: Told): Promise<void> {
  told.deleted = "asked";
  await sandbox.delete();
  told.deleted = "acknowledged";
}
