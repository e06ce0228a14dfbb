import { lstatSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { HoldfastError, type ResyncReason } from "@holdfast/protocol";
import { Coalesced } from "./coalesced.ts";
import { EventRing } from "./event-ring.ts";
import { WatchedTree } from "./watched-tree.ts";

// What happens to one file within this time is told once: a program that writes in pieces is not worth more.
const GATHER_MS = 40;
// Told at once, however short the time: more would only be a longer pause later.
const MOST_GATHERED = 4096;
// About 3 MB: a client that was away for a moment misses nothing of a build.
const RING_EVENTS = 16_384;
// After an overflow all is read again, which costs most where most happens.
const PAUSE_AFTER_OVERFLOW_MS = 250;

export const resyncMessages: Record<ResyncReason, string> = {
  overflow: "more happened at once than the kernel keeps: look at the files again",
  cursor_expired: "what came after the cursor is not kept any more: look at the files again",
  cursor_unknown: "the watch was begun anew since the cursor was given: look at the files again",
  watch_limit: "there are more directories than can be watched: the watch ends here",
  root_gone: "what was watched was deleted or moved: the watch ends here",
};

export interface WatchTarget {
  readonly path: string;
  readonly recursive: boolean;
}

/** What is watched for any number of clients. It sees to itself: after an overflow it begins anew, and says so. */
export class FileWatch {
  readonly ring = new EventRing({ most: RING_EVENTS });
  readonly #target: WatchTarget;
  readonly #pending = new Coalesced();
  #tree: WatchedTree | undefined;
  #timer: Timer | undefined;
  #begun: Promise<void> | undefined;
  #end: Extract<ResyncReason, "root_gone" | "watch_limit"> | undefined;
  #closed = false;

  constructor(target: WatchTarget) {
    this.#target = target;
  }

  /** No more will come. The ring's last event says why, unless it was closed. */
  get isOver(): boolean {
    return this.#end !== undefined || this.#closed;
  }

  /** Resolves when everything is watched. Throws what prevents it. May be called twice. */
  async begin(): Promise<void> {
    this.#begun ??= this.#watch();
    await this.#begun;
    if (this.#end === "watch_limit") throw tooMany(this.#target.path);
    if (this.#end === "root_gone") throw missing(this.#target.path);
  }

  /** May be called twice. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#tree?.close();
    this.ring.changed.ring();
  }

  async #watch(): Promise<void> {
    const { path, only } = placeOf(this.#target.path);
    this.#tree = openTree({
      path,
      only,
      recursive: this.#target.recursive && only === undefined,
      onChange: (change) => {
        this.#pending.add(change);
        if (this.#pending.size >= MOST_GATHERED) this.#flush();
        this.#soon();
      },
      onMove: () => this.#soon(),
      onLost: (reason) => {
        this.#flush();
        if (reason === "overflow") return void this.#again();
        this.#end = reason;
        this.#resync(reason);
      },
    });
    await this.#tree.begin();
  }

  /** The word comes when the new watches are there: who looks at the files then misses nothing. */
  async #again(): Promise<void> {
    await Bun.sleep(PAUSE_AFTER_OVERFLOW_MS);
    if (this.#closed) return;
    try {
      await this.#watch();
      if (!this.isOver) this.#resync("overflow");
    } catch {
      this.#end = "root_gone";
      this.#resync("root_gone");
    }
  }

  #resync(reason: ResyncReason): void {
    this.ring.push([{ type: "resync", reason, message: resyncMessages[reason] }]);
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#flush();
    }, GATHER_MS);
  }

  #flush(): void {
    this.#tree?.settleMoves();
    this.ring.push(this.#pending.take());
    if (this.#tree?.hasMoves && !this.isOver) this.#soon();
  }
}

function openTree(options: ConstructorParameters<typeof WatchedTree>[0]): WatchedTree {
  try {
    return new WatchedTree(options);
  } catch (cause) {
    throw new HoldfastError("limit_reached", cause instanceof Error ? cause.message : String(cause), {
      hint: "end other watchers in the sandbox, or raise fs.inotify.max_user_instances on the host",
      cause,
    });
  }
}

/** A file is watched in its directory: most programs replace a file rather than write into it. */
function placeOf(text: string): { path: string; only: string | undefined } {
  const trimmed = text.replace(/(?<=.)\/+$/, "");
  const latin1 = (path: string) => Buffer.from(path).toString("latin1");
  const found = statSync(trimmed, { throwIfNoEntry: false }) ?? lstatSync(trimmed, { throwIfNoEntry: false });
  if (found === undefined) throw missing(text);
  if (found.isDirectory()) return { path: latin1(trimmed), only: undefined };
  const name = trimmed.slice(trimmed.lastIndexOf("/") + 1);
  return { path: latin1(dirname(trimmed)), only: latin1(name) };
}

function missing(path: string): HoldfastError {
  return new HoldfastError("not_found", `there is nothing at ${path} that can be watched`, {
    hint: "create it first, or watch the directory that it will be in",
    details: { path },
  });
}

function tooMany(path: string): HoldfastError {
  return new HoldfastError("limit_reached", `there are more directories in ${path} than can be watched`, {
    hint: "watch a smaller part, or raise fs.inotify.max_user_watches on the host",
    details: { path },
  });
}
