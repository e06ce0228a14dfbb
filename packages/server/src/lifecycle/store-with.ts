import type { Store } from "@holdfast/core";

/** The store, with some of its calls done in another way. */
export function storeWith(store: Store, own: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const found = own[name as keyof Store] ?? target[name as keyof Store];
      return typeof found === "function" ? (found as (...args: never[]) => unknown).bind(target) : found;
    },
  });
}
