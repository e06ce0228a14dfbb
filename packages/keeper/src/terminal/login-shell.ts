import { accessSync, constants } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import type { Shell } from "../engine/shell.ts";

/**
 * What a terminal runs when nothing else was asked for: the user's `$SHELL`, else bash, else sh, as a login shell, so
 * that its start-up files set up what a person is used to.
 */
export function loginShell(env: Record<string, string>, found: Shell | undefined): string[] {
  const wanted = env.SHELL;
  if (wanted?.startsWith("/") && isExecutable(wanted)) return [wanted, "-l"];
  if (found !== undefined) return [found.path, "-l"];
  throw new HoldfastError("unsupported", "this sandbox has neither bash nor sh", {
    hint: "give the terminal's command as an array of arguments",
    started: "no",
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
