import type { Host } from "@holdfast/core";
import type { Actor } from "../scheduler.ts";
import { by, type Scene } from "./scene.ts";

/** A step that had begun when its server learned of it may still make its call. */
const UNDER_WAY_MS = 5_000;
/** The sweep that probes, one by whoever takes its job over, and one that somebody asked for. */
const MOST_PROBES = 3;

/** L5: Unreachable host: at most one probe per backoff step per host, whatever the number of instances. */
export class QuietHost {
  readonly #scene: Scene;
  readonly #hosts = new Map<string, Host>();
  /** When each server learned that a host rests until a certain time. */
  readonly #known = new Map<string, number>();
  readonly #probes = new Map<string, number>();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** A server read or wrote these rows. */
  told(actor: Actor, hosts: readonly Host[]): void {
    for (const host of hosts) {
      this.#hosts.set(host.provider, host);
      const key = by(actor, stepOf(host));
      if (!this.#known.has(key)) this.#known.set(key, this.#scene.scheduler.now);
    }
  }

  called(actor: Actor, provider: string, op: string): void {
    const { scheduler, storeNow, judge } = this.#scene;
    const host = this.#hosts.get(provider);
    if (host?.nextProbeAt == null || storeNow() >= host.nextProbeAt) return;
    const since = this.#known.get(by(actor, stepOf(host)));
    if (since === undefined || scheduler.now - since < UNDER_WAY_MS) return;
    const probes = (this.#probes.get(stepOf(host)) ?? 0) + 1;
    if (op === "discover") this.#probes.set(stepOf(host), probes);
    const isQuiet = op === "discover" && probes <= MOST_PROBES;
    judge.demand(isQuiet, "L5", () => `${actor.name} sends ${op} to ${provider}, which rests`);
  }
}

function stepOf({ provider, failures, nextProbeAt }: Host): string {
  return `${provider} ${failures} ${nextProbeAt}`;
}
