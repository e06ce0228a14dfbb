import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { isCode, writeDurably } from "../local/atomic-file.ts";
import { type Layout, makeLayout } from "../local/layout.ts";
import { readBootId } from "../local/place.ts";
import type { Info } from "./engine-types.ts";
import type { Decided } from "./reach.ts";

/**
 * A trial takes a second, and a server that comes back after a crash has sandboxes that wait for it. So what worked with
 * this very daemon, keeper and user, since the machine started, is believed. A daemon that does not share our files is
 * tried each time: the trial also measures its disk.
 */
export interface Tried {
  readonly layout: Layout;
  readonly info: Info;
  readonly keeperBundle: string;
}

export async function recall({ layout, ...tried }: Tried): Promise<Decided | undefined> {
  try {
    const isSame = (await readFile(fileIn(layout), "utf8")) === keyOf(tried);
    return isSame ? { reach: "files" } : undefined;
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function remember({ layout, ...tried }: Tried, { reach }: Decided): Promise<void> {
  if (reach !== "files") return;
  await makeLayout(layout);
  await writeDurably(fileIn(layout), keyOf(tried));
}

function fileIn({ dataDir }: Layout): string {
  return join(dataDir, "tried");
}

function keyOf({ info, keeperBundle }: Omit<Tried, "layout">): string {
  const { ID, ServerVersion, KernelVersion, DockerRootDir } = info;
  const daemon = [ID, ServerVersion, KernelVersion, DockerRootDir];
  const all = [...daemon, basename(keeperBundle), process.getuid?.(), readBootId()];
  return createHash("sha256").update(JSON.stringify(all)).digest("hex");
}
