import { HoldfastError } from "@holdfast/protocol";
import type { DockerApi } from "./api.ts";
import type { Info } from "./engine-types.ts";

/** What we read of an event, in the daemon's names. */
interface Event {
  readonly Action?: string;
  readonly status?: string;
  readonly Actor?: { readonly Attributes?: Readonly<Record<string, string>> };
}

/** When nobody could hear the daemon: it was restarted, or the connection to it broke. */
export interface Silence {
  readonly from: number;
  /** `undefined`: it lasts. */
  readonly to: number | undefined;
}

/** Ends, pauses and their undoing, as Docker calls them; and as Podman calls them where it is asked for them. */
const TOLD = ["die", "oom", "destroy", "stop", "pause", "unpause", "died", "remove"];
/** A daemon says nothing for as long as nothing happens, and Podman not even that it listens. */
const SILENT_MS = 86_400_000;
/** Of the daemon's memory before the connection: what happened while it was being made. */
const OVERLAP_SECONDS = 2;

/** Listens to what the daemon says of our containers, and remembers when it could not be heard. */
export class Events {
  readonly #api: DockerApi;
  readonly #askDaemon: (signal: AbortSignal) => Promise<Info>;
  #silence: Silence | undefined;

  constructor(options: { api: DockerApi; askDaemon: (signal: AbortSignal) => Promise<Info> }) {
    this.#api = options.api;
    this.#askDaemon = options.askDaemon;
  }

  get lastSilence(): Silence | undefined {
    return this.#silence;
  }

  /** Lets a look pass, and notes if the daemon could not even be asked: it closes its door before it ends what it holds. */
  async listening<T>(look: Promise<T>): Promise<T> {
    try {
      return await look;
    } catch (error) {
      if (error instanceof HoldfastError && error.code === "provider_unavailable") this.#unheard();
      throw error;
    }
  }

  /** For one connection: returns or throws when it is over. `undefined`: anything may have happened before it. */
  async watch(onChange: (sandboxId: string | undefined) => void, signal: AbortSignal): Promise<void> {
    const { SystemTime } = await this.#askDaemon(signal);
    const heardAt = Date.now();
    if (this.#silence !== undefined && this.#silence.to === undefined)
      this.#silence = { ...this.#silence, to: heardAt };
    onChange(undefined);
    try {
      // By its own clock: it may be on another machine.
      const now = SystemTime === undefined ? heardAt : Date.parse(SystemTime);
      for await (const event of this.#events(Math.floor(now / 1000) - OVERLAP_SECONDS, signal)) {
        const sandboxId = event.Actor?.Attributes?.["holdfast.sandbox"];
        if (sandboxId !== undefined) onChange(sandboxId);
      }
    } finally {
      if (!signal.aborted) this.#unheard();
    }
  }

  #unheard(): void {
    if (this.#silence === undefined || this.#silence.to !== undefined)
      this.#silence = { from: Date.now(), to: undefined };
  }

  #events(since: number, signal: AbortSignal): AsyncGenerator<Event> {
    // Of everybody's: Podman knows no question for a label whatever its value, and who is ours is in what it tells.
    const filters = JSON.stringify({ type: ["container"], event: TOLD });
    const query = { since: String(since), filters };
    return this.#api.lines<Event>({ method: "GET", path: "/events", query, signal, timeoutMs: SILENT_MS });
  }
}

/**
 * What the daemon remembers having done to a container in that time: it forgets with its end, and after some hundred
 * events. By its own clock; it waits for what is to come.
 */
export async function rememberedActions(
  api: DockerApi,
  container: string,
  { since, until, signal }: { since: number; until: number; signal: AbortSignal },
): Promise<string[]> {
  const filters = JSON.stringify({ type: ["container"], container: [container] });
  const seconds = (ms: number) => (ms / 1000).toFixed(3);
  const query = { since: seconds(since), until: seconds(until), filters };
  const actions: string[] = [];
  const events = api.lines<Event>({ method: "GET", path: "/events", query, signal });
  for await (const { Action, status } of events) actions.push(Action ?? status ?? "");
  return actions;
}
