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

/** What a part answers to. */
export type Paths = Readonly<Record<string, readonly Method[]>>;

/** Handlers for the paths of routes that are loaded with the first request for one of them. */
export function routesOf(paths: Paths, routes: Part<Routes>): Routes {
  const handler =
    (path: string, method: Method): Handler =>
    async (call) => {
      const handle = (await routes.get())[path]?.[method];
      if (handle === undefined) throw noRoute(call.request);
      return handle(call);
    };
  return Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => [
      path,
      Object.fromEntries(methods.map((method) => [method, handler(path, method)])),
    ]),
  );
}
