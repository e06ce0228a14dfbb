import type { WatchEvent } from "@holdfast/protocol";
import type { TestKeeper } from "../test-keeper.ts";

export type Heard = WatchEvent & { cursor: string };

/** A client of a watch, as a test uses it: it hears everything, and knows which files that makes. */
export class TestWatcher implements AsyncDisposable {
  readonly heard: Heard[] = [];
  /** What there is by what was heard; a directory ends with a slash. */
  paths: Set<string>;
  readonly #look: () => Iterable<string>;
  readonly #gone = new AbortController();
  readonly ended: Promise<void>;
  #wake = Promise.withResolvers<void>();

  private constructor(
    response: Response,
    options: { paths: Iterable<string>; look: () => Iterable<string> },
  ) {
    this.paths = new Set(options.paths);
    this.#look = options.look;
    this.ended = this.#run(response).catch(() => {});
  }

  /** Resolves when the watch is in place. `paths`: what is known to be there; `look`: what it does after a resync. */
  static async open(
    keeper: TestKeeper,
    path: string,
    options: { query?: string; since?: string; paths?: Iterable<string>; look?: () => Iterable<string> } = {},
  ): Promise<TestWatcher> {
    const headers: Record<string, string> =
      options.since === undefined ? {} : { "Last-Event-ID": options.since };
    const url = `/v1/file-watch?path=${encodeURIComponent(path)}${options.query ?? ""}`;
    const response = await keeper.request(url, { headers });
    if (!response.ok) throw new Error(await response.text());
    const watcher = new TestWatcher(response, { paths: [], look: () => [], ...options });
    await watcher.until(({ type }) => type === "ready");
    return watcher;
  }

  get lastCursor(): string {
    return this.heard.at(-1)?.cursor ?? "";
  }

  /** Waits for an event, also one that came before. */
  until(matches: (event: Heard) => boolean): Promise<Heard> {
    return this.#waitFor(() => this.heard.find(matches));
  }

  /** Waits until what was heard makes exactly these files. */
  async untilPaths(wanted: readonly string[]): Promise<void> {
    const isThere = () => this.paths.size === wanted.length && wanted.every((path) => this.paths.has(path));
    await this.#waitFor(() => isThere() || undefined);
  }

  /** In short, without `ready`: type and path. */
  get told(): string[] {
    return this.heard
      .filter(({ type }) => type !== "ready")
      .map((event) => ("path" in event ? `${event.type} ${event.path}` : JSON.stringify(event)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort();
    await this.ended;
  }

  async #waitFor<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await this.#wake.promise;
    }
  }

  async #run(response: Response): Promise<void> {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    this.#gone.signal.addEventListener("abort", () => void reader.cancel());
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) this.#take(block);
      this.#wake.resolve();
      this.#wake = Promise.withResolvers();
    }
  }

  #take(block: string): void {
    const match = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block);
    if (match === null) return; // a sign of life
    const event = { cursor: match[1], type: match[2], ...JSON.parse(match[3] ?? "") } as Heard;
    this.heard.push(event);
    if (event.type === "resync") this.paths = new Set(this.#look());
    if (!("path" in event)) return;
    const mark = (path: string) => (event.directory ? `${path}/` : path);
    if (event.type === "created" || event.type === "modified") this.paths.add(mark(event.path));
    const left = event.type === "deleted" ? event.path : event.type === "moved" ? event.from : undefined;
    if (left === undefined) return;
    const below = [...this.paths].filter((path) => path === left || path.startsWith(`${left}/`));
    for (const path of below) this.paths.delete(path);
    if (event.type !== "moved") return;
    for (const path of below) this.paths.add(event.path + path.slice(left.length));
    this.paths.add(mark(event.path));
  }
}
