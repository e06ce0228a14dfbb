import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { isRoot } from "./host-user.ts";
import { makeDir } from "./owned-files.ts";

/**
 * Where the local provider keeps things. Nothing of it can be seen inside a sandbox, except the directories that are
 * bound into that one.
 *
 *     keepers/<hash>/           a keeper's binary with its loader and libraries, kept as long as an instance uses it
 *     uids/<uid>                a claim on a host user id; its content is the sandbox that holds it
 *     sandboxes/<sandbox>/      the disk: disk.json, workspace/, home/, state/
 *     snapshots/<snapshot>/     a copy of a disk: snapshot.json, workspace/, home/
 *     instances/<name>/         one instance: identity.json, keeper.pid, socket/, run/, tmp/, hosts, hostname, launch.log
 *     shared/                   what all of them see alike: `shared-files.ts`
 *     locks                     one file; places in it are locked by whoever works on a sandbox
 */
export interface Layout {
  readonly dataDir: string;
  readonly keepers: string;
  readonly uids: string;
  readonly sandboxes: string;
  readonly instances: string;
  readonly snapshots: string;
  readonly shared: string;
  readonly locks: string;
}

export function layoutOf(dataDir: string): Layout {
  return {
    dataDir,
    keepers: join(dataDir, "keepers"),
    uids: join(dataDir, "uids"),
    sandboxes: join(dataDir, "sandboxes"),
    instances: join(dataDir, "instances"),
    snapshots: join(dataDir, "snapshots"),
    shared: join(dataDir, "shared"),
    locks: join(dataDir, "locks"),
  };
}

/** May be called twice. Root's sandboxes run under other users: they may pass through, but not look around. */
export function makeLayout(layout: Layout): void {
  const mode = isRoot() ? 0o711 : 0o700;
  const { dataDir, keepers, uids, sandboxes, instances, snapshots } = layout;
  mkdirSync(dataDir, { recursive: true });
  for (const dir of [dataDir, keepers, uids, sandboxes, instances, snapshots]) makeDir(dir, { mode });
}
