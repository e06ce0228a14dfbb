import { accessSync, constants, statSync } from "node:fs";
import { resolve } from "node:path";
import { HoldfastError } from "@holdfast/protocol";

/** Throws what a person understands; the spawn itself says ENOENT for a missing program and a missing folder alike. */
export function checkStart(plan: {
  argv: readonly string[];
  cwd: string;
  env: Record<string, string>;
}): void {
  const { argv, cwd, env } = plan;
  if (!isDirectory(cwd)) {
    throw new HoldfastError("invalid_argument", `the working directory ${cwd} is not there`, {
      started: "no",
      details: { cwd },
      hint: "create it first, or leave `cwd` out",
    });
  }
  const program = argv[0] ?? "";
  if (candidates(program, { cwd, path: env.PATH ?? "" }).some(isExecutableFile)) return;
  throw new HoldfastError("invalid_argument", `the program ${program} is not there or cannot be executed`, {
    started: "no",
    details: { program, path: env.PATH ?? "" },
    hint: "check its name, its mode and the PATH inside the sandbox",
  });
}

function candidates(program: string, { cwd, path }: { cwd: string; path: string }): string[] {
  if (program.includes("/")) return [resolve(cwd, program)];
  return path.split(":").map((dir) => resolve(cwd, dir, program));
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
