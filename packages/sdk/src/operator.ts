import type { LeaseInfo, ProviderInfo, Sandbox as SandboxInfo, SweepReport } from "@holdfast/protocol";
import type { Client } from "./client.ts";
import { type CallOptions, clientOf } from "./lifecycle.ts";
import type { Waiting } from "./scope.ts";

const PAGE = 1000;

/**
 * What whoever runs a server looks at and does: beyond any single sandbox, and not for agents.
 *
 * @example
 * ```ts
 * const operator = await Operator.connect();
 * const { providers } = await operator.sweep({ dryRun: true });
 * ```
 */
export class Operator {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  /**
   * The server of these options, or the one on this machine. Sends nothing yet.
   *
   * @example
   * ```ts
   * const operator = await Operator.connect();
   * ```
   */
  static async connect(options: CallOptions = {}): Promise<Operator> {
    return new Operator(await clientOf(options));
  }

  /**
   * Every provider: whether it can be reached, what it can do, and what room it has.
   *
   * @example
   * ```ts
   * for (const { provider, state } of await operator.providers()) console.log(provider, state);
   * ```
   */
  async providers({ signal }: Waiting = {}): Promise<ProviderInfo[]> {
    const call = { method: "GET", path: "/v1/providers", again: "safe", signal } as const;
    return (await this.#client.json<{ providers: ProviderInfo[] }>(call)).body.providers;
  }

  /**
   * Every record under which an instance may exist, or lately did, page after page.
   *
   * @example
   * ```ts
   * for await (const { phase, instanceId } of operator.leases()) console.log(phase, instanceId);
   * ```
   */
  async *leases({ signal }: Waiting = {}): AsyncGenerator<LeaseInfo> {
    let cursor: string | undefined;
    do {
      const query = { cursor, limit: PAGE };
      const call = { method: "GET", path: "/v1/leases", query, again: "safe", signal } as const;
      const { body } = await this.#client.json<{ leases: LeaseInfo[]; nextCursor?: string }>(call);
      yield* body.leases;
      cursor = body.nextCursor;
    } while (cursor !== undefined);
  }

  /**
   * Compares what the providers hold with what should be there, at once. `dryRun`: says what it would do, only.
   *
   * @example
   * ```ts
   * const report = await operator.sweep({ dryRun: true });
   * ```
   */
  async sweep({ dryRun, signal }: Waiting & { dryRun?: boolean | undefined } = {}): Promise<SweepReport> {
    const call = {
      method: "POST",
      path: "/v1/admin/sweep",
      query: { dryRun },
      again: "safe",
      signal,
    } as const;
    return (await this.#client.json<SweepReport>(call)).body;
  }

  /**
   * Forgets a sandbox's instance without evidence that it is gone, so that another may run. The old one is hunted on;
   * until it is found, two may run at once. The reason is written into the timeline.
   *
   * @example
   * ```ts
   * await operator.abandon("issue-42", { reason: "its host burnt down" });
   * ```
   */
  async abandon(idOrName: string, { reason, signal }: Waiting & { reason: string }): Promise<SandboxInfo> {
    const json = { sandbox: idOrName, reason };
    const call = { method: "POST", path: "/v1/admin/abandon", json, again: "safe", signal } as const;
    return (await this.#client.json<SandboxInfo>(call)).body;
  }

  /**
   * A link that signs a browser into the dashboard without the token: once, and within ten minutes.
   *
   * @example
   * ```ts
   * const { url } = await operator.signInLink();
   * ```
   */
  async signInLink({ signal }: Waiting = {}): Promise<{ url: string; expiresAt: string }> {
    const call = { method: "POST", path: "/v1/admin/sign-in-code", again: "safe", signal } as const;
    const { code, expiresAt } = (await this.#client.json<{ code: string; expiresAt: string }>(call)).body;
    // Behind the `#`, which a browser sends nobody.
    return { url: `${this.#client.url}/#code=${code}`, expiresAt };
  }

  /**
   * Makes another API token and gives it. The old one is worth nothing from then on, also to this client: connect anew.
   *
   * @example
   * ```ts no-run
   * const token = await operator.rotateToken();
   * const again = await Operator.connect({ token });
   * ```
   */
  async rotateToken({ signal }: Waiting = {}): Promise<string> {
    const call = { method: "POST", path: "/v1/admin/token/rotate", again: "never", signal } as const;
    return (await this.#client.json<{ token: string }>(call)).body.token;
  }
}
