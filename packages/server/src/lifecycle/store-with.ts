import type { Store } from "@holdfast/core";

/** The store, with some of its calls done in another way. An object, made once: a Proxy would be asked in every call. */
export function storeWith(store: Store, own: Partial<Store>): Store {
  const calls = store as unknown as Record<string, (...args: unknown[]) => unknown>;
  const all = [...namesOf(store)].map((name) => [
    name,
    typeof calls[name] === "function" ? (...args: unknown[]) => calls[name]?.(...args) : calls[name],
  ]);
  return { ...Object.fromEntries(all), ...own };
}

/** Its own, and those of its classes. */
function* namesOf(store: object): Generator<string> {
  for (let at = store; at !== Object.prototype; at = Object.getPrototypeOf(at))
    yield* Object.getOwnPropertyNames(at).filter((name) => name !== "constructor");
}
