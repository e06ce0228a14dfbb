import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "holdfast-theme";
const listeners = new Set<() => void>();
const darkSystem = matchMedia("(prefers-color-scheme: dark)");

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, chosen);
}

/** What is shown: the choice, or the system's. For what cannot be styled by CSS. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, isDark);
}

export function setTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
  for (const listener of listeners) listener();
}

export function applyTheme(): void {
  const theme = chosen();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function chosen(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

function isDark(): boolean {
  const theme = chosen();
  return theme === "dark" || (theme === "system" && darkSystem.matches);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  darkSystem.addEventListener("change", listener);
  return () => {
    listeners.delete(listener);
    darkSystem.removeEventListener("change", listener);
  };
}
