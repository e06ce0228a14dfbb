import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Sandbox } from "holdfast";
import { DRAFT_PREFIX } from "./fetch-file.ts";
import { mergeInto } from "./merge.ts";
import type { Progress } from "./progress.ts";
import { unpack } from "./unpack.ts";

/** Copies a directory here. It is unpacked beside its place, and moved there, or merged into what is there, when all came. */
export async function fetchTree({
  sandbox,
  source,
  path,
  progress,
}: {
  sandbox: Sandbox;
  source: string;
  path: string;
  progress: Progress;
}): Promise<void> {
  const draft = join(dirname(path), `${DRAFT_PREFIX}${randomUUID()}`);
  mkdirSync(draft, { mode: 0o700 });
  try {
    const { finish } = await unpack(progress.counting(await sandbox.files.readTar(source)), draft);
    chmodSync(draft, 0o755);
    if (existsSync(path)) mergeInto(draft, path);
    else renameSync(draft, path);
    finish(path);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
