import { setTimeout as sleep } from "node:timers/promises";
import type { Readiness } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { DockerApi } from "./api.ts";
import { pullFailed, refused } from "./errors.ts";
import { findImage } from "./image.ts";
import { parseImageName } from "./image-name.ts";
import { type PullLine, PullTally } from "./pull-progress.ts";
import { registryAuth } from "./registry-auth.ts";

export interface PullOptions {
  readonly api: DockerApi;
  /** As in DOCKER_CONFIG. */
  readonly configDir: string;
  /** A pull that says nothing for so long is given up. */
  readonly stalledMs?: number;
}

/** A registry behind a slow line is heard of every few seconds; before the first layer it may take its time. */
const STALLED_MS = 180_000;
/** An image that is nearly there is waited for. */
const MOMENT_MS = 250;
/** Others who wait for the same image hear of its failure; who asks after that makes it tried again. */
const REMEMBERED_MS = 3_000;

interface Pull {
  readonly tally: PullTally;
  readonly done: Promise<void>;
  failure?: unknown;
}

/** The images that are being fetched: each once, however many wait for it, and on its own when nobody asks. */
export class Pulls {
  readonly #options: PullOptions;
  readonly #pulls = new Map<string, Pull>();

  constructor(options: PullOptions) {
    this.#options = options;
  }

  /** Whether the image is there. If it is not, it is being fetched from now on. */
  async prepare(name: string, signal: AbortSignal): Promise<Readiness> {
    if ((await findImage(this.#options.api, name, signal)) !== undefined) return { state: "ready" };
    const pull = this.#pulls.get(name) ?? this.#begin(name);
    await Promise.race([pull.done, sleep(MOMENT_MS)]);
    if (pull.failure !== undefined) throw pull.failure;
    if (!this.#pulls.has(name)) return { state: "ready" };
    return { state: "fetching", detail: { image: name, ...pull.tally.progress } };
  }

  #begin(name: string): Pull {
    const tally = new PullTally();
    const done = pullImage(name, tally, this.#options).then(
      () => void this.#pulls.delete(name),
      (error: unknown) => {
        pull.failure = error;
        setTimeout(() => this.#pulls.delete(name), REMEMBERED_MS).unref();
      },
    );
    const pull: Pull = { tally, done };
    this.#pulls.set(name, pull);
    return pull;
  }
}

async function pullImage(name: string, tally: PullTally, options: PullOptions): Promise<void> {
  const { api, configDir, stalledMs = STALLED_MS } = options;
  const { repository, version, registry } = parseImageName(name);
  const stalled = new AbortController();
  const giveUp = setTimeout(() => stalled.abort(tooSlow(name, stalledMs)), stalledMs).unref();
  const call = { method: "POST", path: "/images/create" } as const;
  const query = { fromImage: repository, tag: version };
  try {
    const headers = await registryAuth(configDir, registry);
    const lines = { ...call, query, headers, signal: stalled.signal, timeoutMs: stalledMs };
    for await (const line of api.lines<PullLine>(lines)) {
      giveUp.refresh();
      // By now its answer has begun, and cannot be a refusal any more.
      if (line.error !== undefined) throw refused(call, { status: 500, bytes: messageOf(line.error) });
      tally.add(line);
    }
  } catch (cause) {
    throw pullFailed({ name, registry }, cause);
  } finally {
    clearTimeout(giveUp);
  }
}

function messageOf(message: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ message }));
}

function tooSlow(name: string, stalledMs: number): HoldfastError {
  const seconds = Math.round(stalledMs / 1000);
  return new HoldfastError("launch_failed", `the pull of ${name} has said nothing for ${seconds} s`, {
    hint: "Look at the way from the daemon to the registry, and at the daemon's log.",
    details: { image: name },
    started: "no",
  });
}
