import type { Capacity } from "@holdfast/core";
import type { DockerApi } from "./api.ts";
import type { ListedContainer } from "./engine-types.ts";
import { execIn } from "./exec-stream.ts";
import { keeperProgram } from "./inside.ts";
import { SCHEMA_LABEL } from "./labels.ts";

/** A look costs a program's start on the daemon's machine. */
const FRESH_MS = 10_000;

/**
 * The daemon's disk where we cannot look at it: a container of ours that runs can, the one of the trial first. While
 * none does, what was last seen is all that is known.
 */
export class FarDisk {
  readonly #api: DockerApi;
  #seen: Capacity["disk"] | undefined;
  #seenAt = Number.NEGATIVE_INFINITY;

  constructor(api: DockerApi) {
    this.#api = api;
  }

  async measure(signal: AbortSignal): Promise<Capacity["disk"]> {
    if (performance.now() - this.#seenAt < FRESH_MS && this.#seen !== undefined) return this.#seen;
    const container = await this.#anyRunning(signal);
    if (container === undefined && this.#seen !== undefined) return this.#seen;
    if (container === undefined) throw new Error("no container of ours runs there that could look");
    const { stream } = await execIn(this.#api, container, { argv: [...keeperProgram, "disk", "/"], signal });
    this.#seen = JSON.parse(await textOf(stream)) as Capacity["disk"];
    this.#seenAt = performance.now();
    return this.#seen;
  }

  async #anyRunning(signal: AbortSignal): Promise<string | undefined> {
    const query = { filters: JSON.stringify({ label: [SCHEMA_LABEL], status: ["running"] }), limit: "1" };
    const call = { method: "GET", path: "/containers/json", query, signal } as const;
    return (await this.#api.json<ListedContainer[]>(call))?.[0]?.Id;
  }
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}
