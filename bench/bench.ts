import { type DockerDaemon, missingDocker, startDockerDaemon } from "@holdfast/testkit";
import { Sandbox } from "holdfast";
import { TestServer, type TestServerOptions } from "../e2e/harness.ts";
import { SpawnInC } from "./floors.ts";
import { type Contender, type Turns, takeTurns } from "./measure.ts";
import { type Aim, type Entry, type Line, single, type Unit } from "./report.ts";

/** Something to measure. Its name is what `npm run bench -- NAME` takes. */
export interface Case {
  readonly name: string;
  readonly about: string;
  /** It needs more than a default run should take: only when it is named. */
  readonly onlyIfNamed?: true;
  run(bench: Bench): Promise<void>;
}

/** What the cases share: a server, a daemon, the floor in C; each is there once somebody asks, and gone at the end. */
export class Bench implements AsyncDisposable {
  /** A short run has fewer rounds and smaller files, and no peers: it guards against changes, and proves no aim. */
  readonly isShort: boolean;
  readonly signal: AbortSignal;
  readonly lines: Line[] = [];
  readonly #parts = new AsyncDisposableStack();
  #group = "";
  #server: Promise<TestServer> | undefined;
  #docker: Promise<Dockers | undefined> | undefined;
  #inC: SpawnInC | undefined;

  constructor(options: { isShort: boolean; signal: AbortSignal }) {
    this.isShort = options.isShort;
    this.signal = options.signal;
  }

  async run(one: Case): Promise<void> {
    this.#group = one.about;
    this.say(`${one.name}: ${one.about}`);
    await one.run(this);
  }

  say(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** One for all cases that do not say otherwise; each removes the sandboxes it made. */
  server(): Promise<TestServer> {
    this.#server ??= this.newServer();
    return this.#server;
  }

  async newServer(options: TestServerOptions = {}): Promise<TestServer> {
    // As the product is, also where tests are not.
    const server = await TestServer.start({ ...options, env: { HOLDFAST_SPARES: "", ...options.env } });
    this.#parts.defer(() => server.dispose());
    return server;
  }

  /** A daemon of its own, and a server on it; `undefined` where there can be none, and in a short run. */
  docker(): Promise<Dockers | undefined> {
    this.#docker ??= this.#startDocker();
    return this.#docker;
  }

  async #startDocker(): Promise<Dockers | undefined> {
    if (this.isShort) return undefined;
    const missing = missingDocker();
    if (missing !== undefined) {
      this.say(`  without Docker: ${missing}`);
      return undefined;
    }
    const daemon = await startDockerDaemon();
    this.#parts.defer(() => daemon.stop());
    const image = daemon.images.busybox;
    const server = await this.newServer({
      args: ["--providers", "docker", "--docker-image", image],
      env: { DOCKER_HOST: daemon.host },
    });
    return { daemon, image, server, cli: ["docker", "--host", daemon.host] };
  }

  inC(): SpawnInC {
    if (this.#inC === undefined) this.#inC = this.#parts.use(new SpawnInC());
    return this.#inC;
  }

  /** Measures all of them in turns, and writes the line. */
  async compare(
    what: string,
    contenders: readonly (Contender | undefined)[],
    options: Omit<Turns, "signal"> & { aims?: readonly Aim[]; note?: string },
  ): Promise<Line> {
    this.say(`  ${what} …`);
    const there = contenders.filter((contender) => contender !== undefined);
    const rounds = this.isShort ? Math.min(options.rounds, 30) : options.rounds;
    const { summaries, noise } = await takeTurns(there, { ...options, rounds, signal: this.signal });
    const entries = there.flatMap(({ role, name }, i): Entry[] => {
      const summary = summaries[i];
      return summary === undefined ? [] : [{ role, name, summary }];
    });
    return this.line(what, "ms", entries, { aims: options.aims, note: options.note, noise });
  }

  /** A line of figures that were taken once each. */
  line(
    what: string,
    unit: Unit,
    entries: readonly (Entry | { role: Entry["role"]; name: string; value: number } | undefined)[],
    more: { aims?: readonly Aim[] | undefined; note?: string | undefined; noise?: Line["noise"] } = {},
  ): Line {
    const { aims = [], note, noise } = more;
    const line: Line = {
      ...{ group: this.#group, what, unit, aims },
      entries: entries
        .filter((entry) => entry !== undefined)
        .map((entry) =>
          "value" in entry ? { role: entry.role, name: entry.name, summary: single(entry.value) } : entry,
        ),
      ...(note !== undefined && { note }),
      ...(noise !== undefined && { noise }),
    };
    this.lines.push(line);
    return line;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync();
  }
}

export interface Dockers {
  readonly daemon: DockerDaemon;
  readonly image: string;
  readonly server: TestServer;
  /** The command line of Docker, at this daemon. */
  readonly cli: string[];
}

/** So many sandboxes, a few at a time. */
export async function manySandboxes(server: TestServer, count: number): Promise<Sandbox[]> {
  const made: Sandbox[] = [];
  while (made.length < count) {
    const some = Math.min(8, count - made.length);
    const next = () => Sandbox.create({ network: "none" }, server.at);
    made.push(...(await Promise.all(Array.from({ length: some }, next))));
  }
  return made;
}
