import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DockerDaemon } from "@holdfast/testkit";
import { Client } from "holdfast";
import { everSeen, keepers } from "../crash-world.ts";
import { root, TestServer } from "../harness.ts";
import { formatPoint, type Point } from "./point.ts";

/** A server that ends in its own start again and again is not started for ever. */
const MOST_BOOTS = 10;
const bun = join(root, "node_modules/.bin/bun");
const preload = join(root, "e2e/failpoints/preload.ts");
const program = [bun, "--no-env-file", "--config=/dev/null", "--preload", preload];

/** A server that can be told at which call to die, and that is started again, unarmed, whenever it has. */
export class Victim {
  readonly server: TestServer;
  readonly client: Client;
  readonly daemon: DockerDaemon | undefined;
  readonly #folder: string;
  #boots = 0;
  #closing = false;
  #doubles: string[] = [];
  #keptAlive: Promise<void>;

  private constructor(options: {
    server: TestServer;
    client: Client;
    folder: string;
    daemon: DockerDaemon | undefined;
  }) {
    this.daemon = options.daemon;
    this.server = options.server;
    this.client = options.client;
    this.#folder = options.folder;
    this.#keptAlive = this.#keepAlive();
  }

  /** `daemon`: its sandboxes are containers there. */
  static async start({ daemon }: { daemon?: DockerDaemon | undefined } = {}): Promise<Victim> {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-failpoints-"));
    const command = [...program, join(root, "packages/server/src/main.ts")];
    const server = await TestServer.start({
      command,
      ...(daemon && { args: ["--providers", "docker", "--docker-image", daemon.images.debian] }),
      env: { HOLDFAST_FAILPOINTS: folder, HOLDFAST_SPARES: "1", ...(daemon && { DOCKER_HOST: daemon.host }) },
    });
    const client = await Client.connect({ ...server.at, patienceMs: 60_000 });
    // From now on a refused connection means a restart.
    await client.json({ method: "GET", path: "/v1/sandboxes", again: "safe" });
    return new Victim({ server, client, folder, daemon });
  }

  arm(point: Point): void {
    this.#boots = 0;
    this.#doubles = [];
    writeFileSync(join(this.#folder, "armed"), formatPoint(point));
  }

  /** Whether it died where it was told to. */
  disarm(): "died" | "lived" {
    const file = join(this.#folder, "armed");
    if (!existsSync(file)) return "died";
    rmSync(file);
    return "lived";
  }

  /** The labels of all calls that the work made, in order. */
  async record(work: () => Promise<unknown>): Promise<string[]> {
    const file = join(this.#folder, "trace");
    writeFileSync(file, "");
    await work();
    const lines = readFileSync(file, "utf8").split("\n");
    rmSync(file);
    return lines.filter(Boolean);
  }

  /** Ends it at no particular moment, and waits until the next one serves, however many starts that takes. */
  async restart(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const { pid } = this.server;
    process.kill(pid, signal);
    while (this.server.pid === pid) await Bun.sleep(5);
    await this.client.json({ method: "GET", path: "/v1/sandboxes", again: "safe" });
  }

  /** Sandboxes that were seen with two keepers at a time. Looks at every death, and whenever it is called. */
  doubles(): readonly string[] {
    const ours = everSeen(this.server.dataDir);
    const seen = keepers().filter((id) => ours.has(id));
    this.#doubles.push(...seen.filter((id, i) => seen.indexOf(id) !== i));
    return this.#doubles;
  }

  /** May be called twice. */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.disarm();
    await this.server.dispose();
    await this.#keptAlive;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #keepAlive(): Promise<void> {
    for (;;) {
      await this.server.exited;
      if (this.#closing || ++this.#boots > MOST_BOOTS) return;
      this.doubles();
      // One that is armed may die before it is up.
      await this.server.boot().catch(() => undefined);
    }
  }
}
