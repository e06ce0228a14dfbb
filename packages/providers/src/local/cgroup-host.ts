import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRoot } from "./host-user.ts";
import { makeDir } from "./owned-files.ts";
import { findProgram, helperEnvironment, programPath } from "./programs.ts";

/** How this machine lets us limit a group of processes. Found by trying, once. */
export type CgroupHost =
  | {
      readonly kind: "v1";
      readonly detail: string;
      /** Our directory in each controller's own tree. */
      readonly parents: { memory?: string; pids?: string; cpu?: string; systemd?: string };
    }
  | { readonly kind: "v2"; readonly detail: string; readonly parent: string }
  /** A plain user's own service manager does it for us. */
  | { readonly kind: "systemd"; readonly detail: string }
  | { readonly kind: "unavailable"; readonly detail: string };

/**
 * At the top and not below the server's own group: a service manager that stops the server ends everything below the
 * server's group, and sandboxes must live on.
 */
const OUR_GROUP = "holdfast";

interface Mount {
  readonly dir: string;
  readonly options: readonly string[];
}

export async function findCgroupHost(): Promise<CgroupHost> {
  const mounts = await readMounts();
  const unified = mounts.v2 && (await tryV2(mounts.v2));
  if (unified !== undefined) return { kind: "v2", detail: "cgroup v2", parent: unified };
  const parents = await tryV1(mounts.v1);
  if (parents.pids !== undefined) return { kind: "v1", detail: "cgroup v1", parents };
  if (await canUseSystemd()) return { kind: "systemd", detail: "systemd scopes of this user" };
  return { kind: "unavailable", detail: unavailableBecause() };
}

function unavailableBecause(): string {
  return isRoot()
    ? "no cgroup controller can be written on this machine"
    : `a plain user may not make control groups here, and "systemd-run --user --scope" does not work`;
}

async function readMounts(): Promise<{ v1: Mount[]; v2: string | undefined }> {
  const v1: Mount[] = [];
  let v2: string | undefined;
  for (const line of (await readFile("/proc/self/mountinfo", "utf8")).split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const dir = before.split(" ")[4] ?? "";
    const [type, , options = ""] = after.split(" ");
    if (type === "cgroup2") v2 = dir;
    if (type === "cgroup") v1.push({ dir, options: options.split(",") });
  }
  return { v1, v2 };
}

async function tryV2(mount: string): Promise<string | undefined> {
  const parent = join(mount, OUR_GROUP);
  try {
    const controllers = (await readFile(join(mount, "cgroup.controllers"), "utf8")).trim().split(" ");
    if (!["memory", "pids", "cpu"].every((controller) => controllers.includes(controller))) return undefined;
    if (isRoot()) await delegate(mount, parent);
    return (await canJoin(parent)) ? parent : undefined;
  } catch {
    return undefined; // not ours to write, or hidden below another mount: the next way is tried
  }
}

async function delegate(mount: string, parent: string): Promise<void> {
  await writeFile(join(mount, "cgroup.subtree_control"), "+memory +pids +cpu", { flag: "r+" });
  makeDir(parent, { mode: 0o755 });
  await writeFile(join(parent, "cgroup.subtree_control"), "+memory +pids +cpu", { flag: "r+" });
}

async function tryV1(mounts: readonly Mount[]): Promise<Extract<CgroupHost, { kind: "v1" }>["parents"]> {
  const wanted = { memory: "memory", pids: "pids", cpu: "cpu", systemd: "name=systemd" } as const;
  const parents: { memory?: string; pids?: string; cpu?: string; systemd?: string } = {};
  for (const key of ["memory", "pids", "cpu", "systemd"] as const) {
    const mount = mounts.find(({ options }) => options.includes(wanted[key]));
    const parent = mount && join(mount.dir, OUR_GROUP);
    if (parent !== undefined && (await canJoin(parent))) parents[key] = parent;
  }
  return parents;
}

/**
 * Really moves a process in: the right to make a directory is not the right to use it. One shell makes the trial and
 * clears it away, so that nothing is left when the server is killed in between.
 */
const TRIAL_SCRIPT = `trial=$0/probe-$$; [ -d "$trial" ] || mkdir "$trial" || exit 1
"$1" -c 'echo $$ > "$0/cgroup.procs"' "$trial"; joined=$?
rmdir "$trial" && exit $joined`;

async function canJoin(parent: string): Promise<boolean> {
  try {
    if (isRoot()) makeDir(parent, { mode: 0o755 });
  } catch {
    return false;
  }
  const sh = programPath("sh");
  return succeeds([sh, "-c", TRIAL_SCRIPT, parent, sh]);
}

async function canUseSystemd(): Promise<boolean> {
  const program = findProgram("systemd-run");
  if (isRoot() || program === undefined) return false;
  return succeeds([program, "--user", "--scope", "--quiet", "--collect", "-p", "TasksMax=100", "--", "true"]);
}

async function succeeds(argv: string[]): Promise<boolean> {
  const env = { ...helperEnvironment(), ...userManagerEnvironment() };
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "ignore", env });
  return (await child.exited) === 0;
}

/** How a plain user's programs find the user's own service manager. Never gets into the sandbox. */
export function userManagerEnvironment(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}
