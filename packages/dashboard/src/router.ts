import { useSyncExternalStore } from "react";

export const tabs = [
  "overview",
  "processes",
  "terminals",
  "sessions",
  "files",
  "ports",
  "snapshots",
] as const;
export type Tab = (typeof tabs)[number];

export type Place =
  | { readonly page: "sandboxes" }
  | { readonly page: "operator" }
  | { readonly page: "sandbox"; readonly id: string; readonly tab: Tab };

export function usePlace(): Place {
  return placeOf(useSyncExternalStore(subscribe, () => location.pathname));
}

export function go(place: Place): void {
  history.pushState(null, "", pathOf(place));
  for (const listener of listeners) listener();
}

export function pathOf(place: Place): string {
  if (place.page === "sandboxes") return "/";
  if (place.page === "operator") return "/operator";
  const rest = place.tab === "overview" ? "" : `/${place.tab}`;
  return `/sandboxes/${encodeURIComponent(place.id)}${rest}`;
}

function placeOf(path: string): Place {
  const [first, id, tab] = path.split("/").filter(Boolean).map(decodeURIComponent);
  if (first === "operator") return { page: "operator" };
  if (first !== "sandboxes" || id === undefined) return { page: "sandboxes" };
  return { page: "sandbox", id, tab: tabs.find((one) => one === tab) ?? "overview" };
}

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("popstate", listener);
  };
}
