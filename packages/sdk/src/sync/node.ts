import { HoldfastError } from "@holdfast/protocol/errors";

/** The parts of Node's library that a sync needs; Bun and Deno have them, too. */
export interface NodeParts {
  readonly fs: typeof import("node:fs/promises");
  readonly files: typeof import("node:fs");
  readonly crypto: typeof import("node:crypto");
  readonly path: typeof import("node:path");
  readonly os: typeof import("node:os");
}

/** By variables, so that a bundler for the browser neither follows them nor stumbles over them. */
export async function nodeParts(): Promise<NodeParts> {
  const load = async (name: string) => import(`node:${name}`);
  try {
    const [fs, files, crypto, path, os] = await Promise.all(
      ["fs/promises", "fs", "crypto", "path", "os"].map(load),
    );
    return { fs, files, crypto, path, os };
  } catch (cause) {
    throw new HoldfastError("unsupported", "a sync needs a file system: it works on Node, Bun and Deno", {
      cause,
      started: "no",
    });
  }
}
