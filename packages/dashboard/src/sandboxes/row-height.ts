import { useSyncExternalStore } from "react";

const narrow = matchMedia("(max-width: 720px)");

/** As the style sheet has it: on a phone a row has two lines. */
export function useRowHeight(): number {
  return useSyncExternalStore(subscribe, () => narrow.matches) ? 68 : 44;
}

function subscribe(listener: () => void): () => void {
  narrow.addEventListener("change", listener);
  return () => narrow.removeEventListener("change", listener);
}
