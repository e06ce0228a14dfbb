import { type Host, probeMs, type Store } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Log } from "../log.ts";

/** So many calls that could not even be made, and the backend is left alone but for one probe at a time. */
const UNREACHABLE_AFTER = 3;

/** Which backends can be reached and take new instances. What the rows say is kept here as it was last read. */
export class Hosts {
  readonly #store: Store;
  readonly #random: () => number;
  readonly #log: Log;
  #known = new Map<string, Host>();

  constructor(options: { store: Store; random: () => number; log: Log }) {
    this.#store = options.store;
    this.#random = options.random;
    this.#log = options.log;
  }

  async read(): Promise<readonly Host[]> {
    const hosts = await this.#store.hosts();
    this.#known = new Map(hosts.map((host) => [host.provider, host]));
    return hosts;
  }

  get(provider: string): Host {
    return this.#known.get(provider) ?? fresh(provider);
  }

  /** Those whose rows rest until a probe is answered. */
  unreachable(): string[] {
    return [...this.#known.values()]
      .filter(({ nextProbeAt }) => nextProbeAt !== null)
      .map(({ provider }) => provider);
  }

  async answered(provider: string): Promise<void> {
    const host = this.get(provider);
    if (host.failures === 0) return;
    await this.#write(provider, { failures: 0, nextProbeAt: null, lastError: null });
  }

  async missed(provider: string, error: HoldfastError): Promise<void> {
    const host = this.get(provider);
    const failures = host.failures + 1;
    const isOut = failures >= UNREACHABLE_AFTER;
    const nextProbeAt = isOut
      ? (await this.#store.now()) + probeMs(failures - UNREACHABLE_AFTER + 1, this.#random())
      : null;
    if (isOut && host.nextProbeAt === null)
      this.#log.error("provider unreachable", { provider, error: error.message });
    await this.#write(provider, { failures, nextProbeAt, lastError: error.message });
  }

  async seen(provider: string, lastSeenAt: number): Promise<void> {
    await this.#write(provider, { lastSeenAt });
  }

  /** An operation found the file system unusable: what runs goes on, nothing new begins. */
  async close(provider: string, error: HoldfastError): Promise<void> {
    this.#log.error("provider closed to new sandboxes", { provider, error: error.message });
    // By its name it is known later whether time and room can heal it.
    const errno = String(error.details?.errno ?? "");
    const closedBecause = error.message.includes(errno) ? error.message : `${errno}: ${error.message}`;
    await this.#write(provider, { closedBecause });
  }

  async reopen(provider: string): Promise<void> {
    if (this.get(provider).closedBecause !== null) await this.#write(provider, { closedBecause: null });
  }

  /** Refuses what would need a backend that cannot be reached. */
  assertReachable(provider: string): void {
    const { nextProbeAt, lastError } = this.get(provider);
    if (nextProbeAt === null) return;
    throw new HoldfastError("provider_unavailable", `provider ${provider} cannot be reached: ${lastError}`, {
      hint: "it is probed again by itself: ask again after nextAttemptAt",
      details: { nextAttemptAt: new Date(nextProbeAt).toISOString() },
      started: "no",
    });
  }

  async #write(provider: string, change: Partial<Omit<Host, "provider">>): Promise<void> {
    this.#known.set(provider, await this.#store.saveHost(provider, change));
  }
}

function fresh(provider: string): Host {
  return {
    provider,
    failures: 0,
    nextProbeAt: null,
    lastError: null,
    lastSeenAt: null,
    closedBecause: null,
  };
}
