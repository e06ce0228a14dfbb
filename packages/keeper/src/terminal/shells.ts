import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { isExecutable, type Shell } from "../engine/shell.ts";
import { cannotStart } from "../engine/spawn.ts";

/**
 * What a terminal runs when nothing else was asked for: the user's `$SHELL`, else bash, else sh, as a login shell, so
 * that its start-up files set up what a person is used to.
 */
export function loginShell(env: Record<string, string>, found: Shell | undefined): string[] {
  const wanted = env.SHELL;
  if (wanted?.startsWith("/") && isExecutable(wanted)) return [wanted, "-l"];
  return [mustHave(found).path, "-l"];
}

/**
 * Starts a program on a terminal. A session's leader that opens a terminal gets it as its own, and no call of the
 * runtime's does that for a terminal of ours: so a shell opens it, and becomes the program.
 */
export function onTerminal(argv: readonly string[], found: Shell | undefined): (ttyPath: string) => string[] {
  // Bash would run what BASH_ENV names, even here; as `sh` it does not.
  const shell = isExecutable("/bin/sh") ? ["/bin/sh"] : [mustHave(found).path, "--posix"];
  return (ttyPath) => [...shell, "-c", 'exec <>"$0" >&0 2>&0; exec "$@"', ttyPath, ...argv];
}

interface Plan {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
}

/** Throws what starting it directly would: the shell between starts in any case, and tells only those who watch. */
export function checkProgram(plan: Plan): void {
  const code = whyNotStartable(plan);
  if (code !== undefined) throw cannotStart(plan, Object.assign(new Error(code), { code }));
}

function whyNotStartable({ argv, cwd, env }: Plan): "ENOENT" | "EACCES" | undefined {
  const program = argv[0] ?? "";
  if (!program.includes("/")) {
    return Bun.which(program, { PATH: env.PATH ?? "", cwd }) === null ? "ENOENT" : undefined;
  }
  const path = resolve(cwd, program);
  if (!existsSync(path)) return "ENOENT";
  return isExecutable(path) && statSync(path).isFile() ? undefined : "EACCES";
}

function mustHave(found: Shell | undefined): Shell {
  if (found !== undefined) return found;
  throw new HoldfastError(
    "unsupported",
    "a terminal needs a shell, and this sandbox has neither bash nor sh",
    {
      hint: "use an image that has a shell, or start the program as a process",
      started: "no",
    },
  );
}
