import { lstatSync } from "node:fs";
import { HoldfastError } from "@holdfast/protocol";
import { programPath } from "./programs.ts";

/**
 * Removes trees that a hostile program has made: paths longer than the kernel takes in one piece, directories without
 * any permission, links to anywhere. `rm` walks by file descriptors and never through a link, which Node's own `rm`
 * does not do for such depths. May be called twice; nothing may be running in them.
 */
export async function removeTree(...paths: string[]): Promise<void> {
  const before = existing(paths);
  if (before.length === 0) return;
  await run([programPath("rm"), "-rf", "--", ...before]);
  const left = existing(before);
  if (left.length === 0) return;
  // A plain user cannot enter a directory of mode 000, not even its own. `chmod -R` does not follow links.
  await run([programPath("chmod"), "-R", "u+rwX", "--", ...left]);
  const { stderr } = await run([programPath("rm"), "-rf", "--", ...left]);
  const [stays] = existing(left);
  if (stays === undefined) return;
  throw new HoldfastError("internal", `cannot remove ${stays}: ${stderr.trim().slice(-400)}`, {
    hint: "Remove it by hand, as the user who owns it or as root, and try again.",
    retryable: true,
    details: { errno: errnoIn(stderr) },
  });
}

function existing(paths: readonly string[]): string[] {
  return paths.filter(exists);
}

/** In its last words; what comes before is a name that the work inside has chosen, in quotes. */
function errnoIn(stderr: string): string | undefined {
  const said = /': ([^']+)$/.exec(stderr.trim())?.[1] ?? "";
  return {
    "No space left on device": "ENOSPC",
    "Read-only file system": "EROFS",
    "Input/output error": "EIO",
  }[said];
}

async function run(argv: string[]): Promise<{ stderr: string }> {
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "pipe", env: { LC_ALL: "C" } });
  const stderr = await new Response(child.stderr).text();
  await child.exited;
  return { stderr };
}

export function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
