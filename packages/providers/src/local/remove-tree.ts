import { lstat } from "node:fs/promises";
import { HoldfastError } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { programPath } from "./programs.ts";

/**
 * Removes trees that a hostile program has made: paths longer than the kernel takes in one piece, directories without
 * any permission, links to anywhere. `rm` walks by file descriptors and never through a link, which Node's own `rm`
 * does not do for such depths. May be called twice; nothing may be running in them.
 */
export async function removeTree(...paths: string[]): Promise<void> {
  const before = await existing(paths);
  if (before.length === 0) return;
  await run([programPath("rm"), "-rf", "--", ...before]);
  const left = await existing(before);
  if (left.length === 0) return;
  // A plain user cannot enter a directory of mode 000, not even its own. `chmod -R` does not follow links.
  await run([programPath("chmod"), "-R", "u+rwX", "--", ...left]);
  const { stderr } = await run([programPath("rm"), "-rf", "--", ...left]);
  const [stays] = await existing(left);
  if (stays === undefined) return;
  throw new HoldfastError("internal", `cannot remove ${stays}: ${stderr.trim().slice(-400)}`, {
    hint: "Remove it by hand, as the user who owns it or as root, and try again.",
    retryable: true,
    details: { errno: errnoIn(stderr) },
  });
}

async function existing(paths: readonly string[]): Promise<string[]> {
  const there = await Promise.all(paths.map(exists));
  return paths.filter((_, i) => there[i]);
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

export async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT")) return false;
    throw error;
  }
}
