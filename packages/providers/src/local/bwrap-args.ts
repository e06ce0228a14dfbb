import { lstatSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { isWithin, type Mount } from "@holdfast/protocol";
import { inside, keeperArgv, SECCOMP_FD } from "./inside.ts";
import type { SharedView } from "./shared-files.ts";

export interface SandboxView {
  readonly name: string;
  readonly hostname: string;
  /** Who the instance is, for whoever finds one of its processes on the host. */
  readonly marker: string;
  readonly bundle: string;
  readonly shared: SharedView;
  readonly disk: string;
  readonly instance: string;
  /** With `full`, whoever starts bubblewrap has already made an own network namespace. */
  readonly network: "none" | "full";
  readonly memoryCgroup: string | undefined;
  /** Of the host, with their sources as they really are. */
  readonly mounts: readonly Mount[];
  /** Places in memory, with their sizes in MiB. */
  readonly tmpfs: Readonly<Record<string, number>>;
}

/** Shared memory of a browser or a database fits; a sandbox without a memory limit cannot fill the host's memory by it. */
const SHARED_MEMORY_BYTES = 512 * 1024 * 1024;

/** The whole command line of bubblewrap: what is separated, what is seen, and the keeper as the first process. */
export function bwrapArgs(view: SandboxView): string[] {
  return [
    ...separation(view),
    // Directories that bubblewrap makes on the way to something else are for their owner alone.
    ...["/home", "/var"].flatMap((dir) => ["--perms", "0755", "--dir", dir]),
    ...systemFiles(),
    ...etcFiles(view),
    ...devices(),
    ...ownDirectories(view),
    ...askedFor(view),
    // All that is left is bubblewrap's own root directory, in memory.
    ...["--remount-ro", "/", "--chdir", "/"],
    "--",
    ...keeperArgv(view),
  ];
}

function separation(view: SandboxView): string[] {
  return [
    ...["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...(view.network === "none" ? ["--unshare-net"] : []),
    ...["--disable-userns", "--cap-drop", "ALL", "--new-session", "--as-pid-1"],
    ...["--uid", String(inside.uid), "--gid", String(inside.uid), "--hostname", view.hostname],
    ...["--seccomp", String(SECCOMP_FD)],
    "--clearenv",
  ];
}

/** The host's programs, read-only, with /bin, /lib and so on as they are there: links, or directories. */
function systemFiles(): string[] {
  const args = ["--ro-bind", "/usr", "/usr"];
  for (const dir of ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]) {
    const found = lstatSync(dir, { throwIfNoEntry: false });
    if (found?.isSymbolicLink()) args.push("--symlink", readlinkSync(dir), dir);
    else if (found?.isDirectory()) args.push("--ro-bind", dir, dir);
  }
  return args;
}

function etcFiles(view: SandboxView): string[] {
  const { shared, instance, network } = view;
  const bind = (source: string, name: string) => ["--ro-bind", source, `/etc/${name}`];
  return [
    ...(hasMountsInEtc(view) ? etcInParts(shared) : ["--ro-bind", shared.etc, "/etc"]),
    ...shared.dirs.flatMap((dir) => ["--ro-bind-try", `/etc/${dir}`, `/etc/${dir}`]),
    ...["hosts", "hostname"].flatMap((name) => bind(join(instance, name), name)),
    ...(network === "full" ? bind(shared.resolvConf, "resolv.conf") : []),
  ];
}

/** What is mounted as a whole has no room for more. */
function hasMountsInEtc({ mounts, tmpfs }: SandboxView): boolean {
  return [...mounts.map(({ target }) => target), ...Object.keys(tmpfs)].some((path) =>
    isWithin(path, "/etc"),
  );
}

function etcInParts({ etc, files }: SharedView): string[] {
  return [
    ...["/etc", "/etc/ssl"].flatMap((dir) => ["--perms", "0755", "--dir", dir]),
    ...files.flatMap((name) => ["--ro-bind", join(etc, name), `/etc/${name}`]),
    ...["--symlink", "/proc/self/mounts", "/etc/mtab"],
  ];
}

function devices(): string[] {
  return [
    ...["--proc", "/proc", "--dev", "/dev"],
    ...["--perms", "1777", "--size", String(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"],
    ...["--remount-ro", "/dev"],
    ...["--dir", "/run", "--symlink", "/run", "/var/run"],
  ];
}

function ownDirectories(view: SandboxView): string[] {
  const { disk, instance, memoryCgroup } = view;
  return [
    ...["--bind", join(instance, "tmp/tmp"), "/tmp", "--bind", join(instance, "tmp/var"), "/var/tmp"],
    ...["--bind", join(disk, "home"), inside.home, "--bind", join(disk, "workspace"), inside.workspace],
    ...["--bind", join(disk, "state"), inside.state, "--bind", join(instance, "run"), inside.run],
    ...["--ro-bind", view.bundle, inside.bin],
    ...(memoryCgroup === undefined ? [] : ["--ro-bind", memoryCgroup, inside.memoryCgroup]),
  ];
}

/** From the outside in, so that one below another is not hidden by it. */
function askedFor({ mounts, tmpfs }: SandboxView): string[] {
  const places = [
    ...Object.entries(tmpfs).map(([target, mib]) => ({
      target,
      args: ["--perms", "1777", "--size", String(mib * 1024 * 1024), "--tmpfs", target],
    })),
    ...mounts.map(({ source, target, writable }) => ({
      target,
      args: [writable ? "--bind" : "--ro-bind", source, target],
    })),
  ];
  return places.sort((a, b) => a.target.length - b.target.length).flatMap(({ args }) => args);
}
