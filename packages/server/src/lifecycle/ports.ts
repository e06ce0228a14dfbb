import type { Change, ExposedPort, Holding, KeeperControl, Store } from "@holdfast/core";
import { type ExposePort, HoldfastError } from "@holdfast/protocol";
import type { NewId } from "./new-lease.ts";
import { type Asked, deleting } from "./refusals.ts";
import type { Sandboxes } from "./sandboxes.ts";

/** All of them are in the sandbox's row. */
const MOST_PORTS = 100;

export interface PortsDeps<Link extends KeeperControl> {
  readonly store: Store;
  readonly sandboxes: Sandboxes<Link>;
  readonly newId: NewId;
}

export interface Exposure {
  readonly holding: Holding;
  readonly exposed: ExposedPort;
  /** "replaced": it had another address, which is no longer good. */
  readonly outcome: "created" | "same" | "replaced";
}

/** Which ports of a sandbox have an address outside. They are rows: a restart of anything changes none of it. */
export class Ports<Link extends KeeperControl> {
  readonly #deps: PortsDeps<Link>;

  constructor(deps: PortsDeps<Link>) {
    this.#deps = deps;
  }

  /** Said again, the address stays; a change from or to `public` gives another one. Wakes nothing. */
  async expose(idOrName: string, wanted: ExposePort, asked: Asked = {}): Promise<Exposure> {
    const { store, sandboxes, newId } = this.#deps;
    for (;;) {
      const holding = await sandboxes.allowed(idOrName, asked);
      if (holding.sandbox.desired === "deleted") throw deleting(holding.sandbox);
      const found = portOf(holding, wanted.port);
      const exposed = exposedAs(wanted, { found, at: holding.readAt, newToken: () => newId("port") });
      if (found !== undefined && Bun.deepEquals(found, exposed)) return { holding, exposed, outcome: "same" };
      const saved = await store.save(holding, withPort(holding, exposed));
      if (saved === undefined) continue;
      const outcome = found === undefined ? "created" : found.token === exposed.token ? "same" : "replaced";
      return { holding: saved as Holding, exposed, outcome };
    }
  }

  /** Takes the address back. Closing what is not exposed changes nothing. */
  async close(idOrName: string, port: number, asked: Asked = {}): Promise<Holding> {
    const { store, sandboxes } = this.#deps;
    for (;;) {
      const holding = await sandboxes.allowed(idOrName, asked);
      if (portOf(holding, port) === undefined) return holding;
      const saved = await store.save(holding, {
        sandbox: { ports: holding.sandbox.ports.filter((one) => one.port !== port) },
        entries: [{ type: "port_closed", detail: { port } }],
      });
      if (saved !== undefined) return saved as Holding;
    }
  }
}

export function portOf({ sandbox }: Holding, port: number): ExposedPort | undefined {
  return sandbox.ports.find((one) => one.port === port);
}

function exposedAs(
  wanted: ExposePort,
  { found, at, newToken }: { found: ExposedPort | undefined; at: number; newToken: () => string },
): ExposedPort {
  const { port, wake = false, public: isPublic = false } = wanted;
  if (found !== undefined && (found.token === null) === isPublic) return { ...found, wake };
  return { port, token: isPublic ? null : newToken(), wake, createdAt: at };
}

function withPort({ sandbox }: Holding, exposed: ExposedPort): Change {
  const others = sandbox.ports.filter(({ port }) => port !== exposed.port);
  if (others.length >= MOST_PORTS) {
    throw new HoldfastError("limit_reached", `sandbox ${sandbox.name} has ${MOST_PORTS} exposed ports`, {
      hint: "close one that is no longer needed",
      started: "no",
    });
  }
  const { port, wake, token } = exposed;
  return {
    sandbox: { ports: [...others, exposed].sort((a, b) => a.port - b.port) },
    entries: [{ type: "port_exposed", detail: { port, wake, public: token === null } }],
  };
}
