import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { KeeperBoot } from "@holdfast/protocol";
import { generatedEtcFiles } from "./etc-files.ts";
import { draftDir, type Identity, instanceDir, writeIdentity } from "./identity.ts";
import { SOCKET_DIR } from "./keeper-socket.ts";
import { files } from "./launcher.ts";
import type { Layout } from "./layout.ts";
import { blockedLinkLocals, blockedRoutes } from "./network.ts";
import { makeDir, writeOwned } from "./owned-files.ts";
import { exists, removeTree } from "./remove-tree.ts";

/** What an instance is started with, beyond its identity. */
export interface Inputs {
  readonly uid: number;
  readonly network: "none" | "full";
  readonly hostname: string;
  readonly boot: KeeperBoot;
}

/** With its identity or not at all: one that was interrupted before has another name, and is made anew. */
export async function makeInstanceDir(layout: Layout, identity: Identity): Promise<void> {
  const dir = instanceDir(layout, identity.ref);
  if (exists(dir)) return;
  const draft = draftDir(layout, identity.ref);
  const { uid } = identity;
  await removeTree(draft);
  makeDir(draft, { mode: 0o711 });
  makeDir(join(draft, SOCKET_DIR), { mode: 0o700 });
  makeDir(join(draft, "run"), { mode: 0o700, uid });
  makeDir(join(draft, "tmp"), { mode: 0o700, uid });
  for (const shared of ["tmp", "var"]) makeDir(join(draft, "tmp", shared), { mode: 0o1777, uid });
  await writeIdentity(draft, identity);
  renameSync(draft, dir);
}

/** May be called again as long as nothing was started. */
export function writeInputs(dir: string, { uid, network, hostname, boot }: Inputs): void {
  for (const [file, text] of Object.entries(generatedEtcFiles(hostname)))
    writeOwned(join(dir, file), text, { mode: 0o644 });
  if (network === "full") {
    writeOwned(join(dir, files.routes), blockedRoutes(), { mode: 0o644 });
    writeOwned(join(dir, files.rules6), blockedLinkLocals(), { mode: 0o644 });
  }
  // The secret is in it: for the sandbox's user alone, who opens it, and only until the keeper has read it.
  removeBootFile(dir);
  writeOwned(join(dir, files.boot), JSON.stringify(boot), { mode: 0o400, uid });
}

/** May be called twice. */
export function removeBootFile(dir: string): void {
  rmSync(join(dir, files.boot), { force: true });
}
