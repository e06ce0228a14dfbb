import { mkdir, rm } from "node:fs/promises";
import type { Server } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { HoldfastError } from "@holdfast/protocol";
import type { Layout } from "../local/layout.ts";
import type { DockerApi } from "./api.ts";
import type { Container } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { type ExecStream, execIn } from "./exec-stream.ts";
import { KEEPER_NAME, keeperProgram } from "./inside.ts";
import { listenAt, removeStale } from "./relay-socket.ts";

/**
 * The way to a keeper whose socket is on another machine: a unix socket here, and for each connection to it a program in
 * the container that joins its streams with the keeper (`packages/keeper/src/relay.ts`), run and reached by the
 * daemon's API. To start one takes a tenth of a second, so some are kept ready.
 */
class Bridge {
  readonly #api: DockerApi;
  readonly #container: string;
  readonly #ready: Duplex[] = [];
  readonly #over = new AbortController();
  #server: Server | undefined;

  constructor(api: DockerApi, container: string) {
    this.#api = api;
    this.#container = container;
  }

  async listen(path: string): Promise<void> {
    this.#server = await listenAt(path, () => this.#take());
  }

  async #take(): Promise<Duplex> {
    const stream = this.#ready.pop() ?? (await this.#dial());
    void this.#refill();
    return stream;
  }

  /** A failure shows when the next connection has to wait for its own. */
  async #refill(): Promise<void> {
    try {
      while (this.#ready.length < READY && !this.#over.signal.aborted) this.#keep(await this.#dial());
    } catch {
      // its container has ended, or the daemon is away
    }
  }

  #keep(stream: Duplex): void {
    this.#ready.push(stream);
    stream.once("close", () => {
      const at = this.#ready.indexOf(stream);
      if (at !== -1) this.#ready.splice(at, 1);
    });
  }

  async #dial(): Promise<Duplex> {
    const signal = AbortSignal.any([this.#over.signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
    const argv = [...keeperProgram, "relay", KEEPER_NAME];
    const { stream, said } = await this.#exec(argv, signal);
    try {
      await greeted(stream, signal);
      return stream;
    } catch (cause) {
      stream.destroy();
      throw new HoldfastError("unavailable", `the keeper is not reached: ${said() || "no answer"}`, {
        cause,
      });
    }
  }

  async #exec(argv: readonly string[], signal: AbortSignal): Promise<ExecStream> {
    try {
      return await execIn(this.#api, this.#container, { argv, signal });
    } catch (error) {
      // Somebody removed the container: nobody else will tell us.
      if (refusalOf(error) === 404) this.close();
      throw error;
    }
  }

  close(): void {
    this.#over.abort(new Error("the bridge is closed"));
    this.#server?.close();
    for (const stream of this.#ready.splice(0)) stream.destroy();
  }
}

/** One for the next call, while one that ended is replaced. */
const READY = 1;
const DIAL_TIMEOUT_MS = 15_000;

/** A socket's path is the whole process's: so is who listens there. */
const bridges = new Map<string, Promise<Bridge>>();

interface Where {
  readonly api: DockerApi;
  readonly layout: Layout;
}

/** Whether its keeper is reached so, and not by a socket in a directory that both sides see. */
export function isBridged({ Mounts }: Pick<Container, "Mounts">): boolean {
  return (
    Mounts?.some(({ Type, Destination }) => Type === "volume" && Destination === "/.holdfast/bin") ?? false
  );
}

/** The socket that leads to this container's keeper. May be called twice. */
export async function ensureBridge({ api, layout }: Where, container: string): Promise<string> {
  const dir = join(layout.dataDir, "bridges");
  const path = join(dir, `${process.pid}-${container.slice(0, 12)}.sock`);
  const opening = bridges.get(path) ?? open(path, dir, new Bridge(api, container));
  bridges.set(path, opening);
  await opening;
  return path;
}

async function open(path: string, dir: string, bridge: Bridge): Promise<Bridge> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await removeStale(dir);
    await bridge.listen(path);
    return bridge;
  } catch (error) {
    bridges.delete(path);
    throw error;
  }
}

/** Its container has ended. May be called twice. */
export async function closeBridge({ layout }: Pick<Where, "layout">, container: string): Promise<void> {
  const path = join(layout.dataDir, "bridges", `${process.pid}-${container.slice(0, 12)}.sock`);
  const bridge = bridges.get(path);
  bridges.delete(path);
  (await bridge?.catch(() => undefined))?.close();
  await rm(path, { force: true });
}

/** The first byte says that it is connected. */
function greeted(stream: Duplex, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onReadable = (): void => {
      if (stream.read(1) === null) return;
      stop();
      resolve();
    };
    const onOver = (): void => {
      stop();
      reject(signal.reason ?? new Error("it ended"));
    };
    const stop = (): void => {
      stream.off("readable", onReadable).off("close", onOver).off("end", onOver);
      signal.removeEventListener("abort", onOver);
    };
    stream.on("readable", onReadable).once("close", onOver).once("end", onOver);
    signal.addEventListener("abort", onOver);
  });
}
