import { rename, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { KeeperBoot } from "@holdfast/protocol";
import { isCode } from "./atomic-file.ts";
import { generatedEtcFiles } from "./etc-files.ts";
import { draftDir, type Identity, instanceDir, writeIdentity } from "./identity.ts";
import { SOCKET_DIR } from "./keeper-socket.ts";
import { files } from "./launcher.ts";
import type { Layout } from "./layout.ts";
import { blockedLinkLocals, blockedRoutes, nameserverOf } from "./network.ts";
import { makeDir, writeOwned } from "./owned-files.ts";
import { exists, removeTree } from "./remove-tree.ts";
import { seccompProgram } from "./seccomp.ts";

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
  if (await exists(dir)) return;
  const draft = draftDir(layout, identity.ref);
  const { uid } = identity;
  await removeTree(draft);
  await makeDir(draft, { mode: 0o711 });
  await makeDir(join(draft, "etc"), { mode: 0o755 });
  await makeDir(join(draft, SOCKET_DIR), { mode: 0o700 });
  await makeDir(join(draft, "run"), { mode: 0o700, uid });
  await makeDir(join(draft, "tmp"), { mode: 0o700, uid });
  for (const shared of ["tmp", "var"]) await makeDir(join(draft, "tmp", shared), { mode: 0o1777, uid });
  await writeIdentity(draft, identity);
  await rename(draft, dir);
}

/** May be called again as long as nothing was started. */
export async function writeInputs(dir: string, { uid, network, hostname, boot }: Inputs): Promise<void> {
  const etc = generatedEtcFiles({ hostname, nameserver: nameserverOf(network) });
  for (const [file, text] of Object.entries(etc))
    await writeOwned(join(dir, "etc", file), text, { mode: 0o644 });
  await writeOwned(join(dir, files.seccomp), seccompProgram(), { mode: 0o644 });
  if (network === "full") {
    await writeOwned(join(dir, files.routes), blockedRoutes(), { mode: 0o644 });
    await writeOwned(join(dir, files.rules6), blockedLinkLocals(), { mode: 0o644 });
  }
  // The secret is in it: for the sandbox's user alone, who opens it, and only until the keeper has read it.
  await removeBootFile(dir);
  await writeOwned(join(dir, files.boot), JSON.stringify(boot), { mode: 0o400, uid });
}

/** May be called twice. */
export async function removeBootFile(dir: string): Promise<void> {
  try {
    await unlink(join(dir, files.boot));
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
  }
}
