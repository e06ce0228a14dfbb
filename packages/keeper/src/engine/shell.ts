import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import type { Command, Env, ShellUsed } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";

export interface Shell {
  readonly name: "bash" | "sh";
  readonly path: string;
}

/** By the sandbox's own PATH, never a command's: a command that changes PATH still gets its shell. */
export function findShell(env: Env): Shell | undefined {
  const dirs = [...(env.PATH ?? "").split(":").filter((dir) => dir.startsWith("/")), "/usr/bin", "/bin"];
  for (const name of ["bash", "sh"] as const) {
    const dir = dirs.find((candidate) => isExecutable(join(candidate, name)));
    if (dir !== undefined) return { name, path: join(dir, name) };
  }
  return undefined;
}

/** What to execute for a command, and which shell that takes. */
export function argvOf(command: Command, shell: Shell | undefined): { argv: string[]; shell: ShellUsed } {
  if (typeof command !== "string") return { argv: command, shell: "none" };
  if (shell === undefined) {
    throw new HoldfastError(
      "unsupported",
      "a command given as text needs a shell, and this sandbox has neither bash nor sh",
      {
        hint: "give the command as an array of arguments",
        started: "no",
      },
    );
  }
  return { argv: [shell.path, "-c", command], shell: shell.name };
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
