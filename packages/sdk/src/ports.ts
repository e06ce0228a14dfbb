import type { ExposePort, Port, SandboxPort } from "@holdfast/protocol";
import type { Scope, Waiting } from "./scope.ts";

/** Who may visit, and whether a visit wakes. */
export interface ExposeOptions extends Omit<ExposePort, "port"> {
  signal?: AbortSignal | undefined;
}

/**
 * Addresses outside for what listens inside a sandbox, also on `localhost` only. An address is private: whoever has it
 * can visit, and nobody can guess it.
 *
 * @example
 * ```ts
 * const server = await sbx.startProcess("npm run dev");
 * await server.waitForPort(3000);
 * const { url } = await sbx.ports.expose(3000);
 * ```
 */
export class Ports {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Gives a port an address, before or after something listens on it. Said again, the address stays. It lives as long as
   * the sandbox, or until `close`. With `wake`, a visit starts a stopped sandbox; with `public`, the address can be
   * guessed by whoever knows the sandbox's id.
   *
   * @example
   * ```ts
   * const { url } = await sbx.ports.expose(3000, { wake: true });
   * ```
   */
  async expose(port: number, options: ExposeOptions = {}): Promise<Port> {
    const { signal, ...asked } = options;
    const json = { port, ...asked };
    const call = { method: "POST", path: this.#path, json, again: "safe", signal } as const;
    return (await this.#scope.client.json<Port>(call)).body;
  }

  /**
   * Those that are exposed, and those that something inside listens on. Wakes nothing.
   *
   * @example
   * ```ts
   * for (const { port, url } of await sbx.ports.list()) console.log(port, url);
   * ```
   */
  async list(options: Waiting = {}): Promise<SandboxPort[]> {
    const call = { method: "GET", path: this.#path, again: "safe", ...options } as const;
    return (await this.#scope.client.json<{ ports: SandboxPort[] }>(call)).body.ports;
  }

  /**
   * Takes a port's address back, for good, and cuts its open connections. May be called twice.
   *
   * @example
   * ```ts
   * await sbx.ports.close(3000);
   * ```
   */
  async close(port: number, options: Waiting = {}): Promise<void> {
    await this.#scope.client.json({
      method: "DELETE",
      path: `${this.#path}/${port}`,
      again: "safe",
      ...options,
    });
  }

  get #path(): string {
    return `${this.#scope.path}/ports`;
  }
}
