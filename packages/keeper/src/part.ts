import { type Handler, type Method, noRoute, type Routes } from "./http/guard.ts";

/**
 * A part of the keeper that is loaded when it is first needed. Most sandboxes never need most parts: one that is not
 * loaded takes no memory of an idle sandbox and no time of its start.
 */
export class Part<T> {
  readonly #load: () => Promise<T>;
  #loading: Promise<T> | undefined;
  #loaded: T | undefined;

  constructor(load: () => Promise<T>) {
    this.#load = load;
  }

  /** `undefined` as long as nobody has needed it: then there is nothing in it. */
  get loaded(): T | undefined {
    return this.#loaded;
  }

  get(): Promise<T> {
    this.#loading ??= this.#begin();
    return this.#loading;
  }

  async #begin(): Promise<T> {
    try {
      await import("./zod-settings.ts"); // before any schema is made
      this.#loaded = await this.#load();
      return this.#loaded;
    } catch (error) {
      this.#loading = undefined; // the next one tries again
      throw error;
    }
  }
}

/** Handlers for the paths of routes that are loaded with the first request for one of them. */
export function routesOf(paths: readonly string[], routes: Part<Routes>): Record<string, Handler> {
  const handler =
    (path: string): Handler =>
    async (call) => {
      const handle = (await routes.get())[path]?.[call.request.method as Method];
      if (handle === undefined) throw noRoute(call.request);
      return handle(call);
    };
  return Object.fromEntries(paths.map((path) => [path, handler(path)]));
}
