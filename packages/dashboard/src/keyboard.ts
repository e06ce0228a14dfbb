import { useEffect, useEffectEvent } from "react";

/**
 * What keys do on this page. Not while somebody types into a field, a terminal or a dialog; and Enter on a link or a
 * button is that link's or button's.
 */
export function useKeys(keys: Readonly<Record<string, () => void>>): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || isPressing(event)) return;
    const act = keys[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(event);
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}

function isTyping({ target }: KeyboardEvent): boolean {
  if (document.querySelector("dialog[open]") !== null) return true;
  return target instanceof HTMLElement && target.closest("input, textarea, select, .xterm") !== null;
}

function isPressing({ key, target }: KeyboardEvent): boolean {
  return key === "Enter" && target instanceof HTMLElement && target.closest("a, button, summary") !== null;
}
