import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Check } from "@holdfast/core";
import type { CgroupHost } from "./cgroup-host.ts";
import { sharesBlocks } from "./copy-tree.ts";
import { isRoot, PROBE_UID } from "./host-user.ts";
import { type Layout, makeLayout } from "./layout.ts";
import { fullNetworkProblem } from "./network.ts";
import { findProgram, helperEnvironment, installHint, type Program, programPath } from "./programs.ts";
import { seccompProgram } from "./seccomp.ts";

export interface ProbeContext {
  readonly layout: Layout;
  readonly keeperBundle: string;
  readonly cgroups: CgroupHost;
}

/** Tries what a sandbox needs, for real, and says what to type where something is missing. */
export async function probeHost(context: ProbeContext): Promise<Check[]> {
  const programs = requiredPrograms().map(checkProgram);
  if (programs.some(({ ok }) => !ok)) return programs;
  return [
    ...programs,
    await guarded("user namespaces", checkNamespaces),
    await guarded("system call filter", async () =>
      found("system call filter", `${seccompProgram().length / 8} instructions`),
    ),
    await guarded("data dir", () => checkDataDir(context.layout)),
    await guarded("keeper", () => checkBundle(context.keeperBundle)),
    checkFullNetwork(),
    checkLimits(context.cgroups),
    await guarded("snapshots", () => checkSnapshots(context.layout)),
  ];
}

function requiredPrograms(): Program[] {
  return ["bwrap", "sh", "rm", "chmod", "cp", "setpriv"];
}

/** They work everywhere; what they cost differs. */
async function checkSnapshots({ snapshots }: Layout): Promise<Check> {
  const isShared = await sharesBlocks(snapshots);
  return found(
    "snapshots",
    isShared ? "copies share blocks (reflink)" : "plain copies: XFS or Btrfs would share blocks",
  );
}

function checkProgram(name: Program): Check {
  const path = findProgram(name);
  if (path !== undefined) return found(name, path);
  return { name, ok: false, required: true, detail: "is not installed", remedy: installHint(name) };
}

/** A real sandbox with a program that does nothing: there are too many ways to forbid it to ask for each. */
async function checkNamespaces(): Promise<Check> {
  const name = "user namespaces";
  const stderr = await failureOf([
    ...asSandboxUser(),
    ...[
      programPath("bwrap"),
      "--unshare-user",
      "--unshare-pid",
      "--unshare-net",
      "--unshare-ipc",
      "--unshare-uts",
    ],
    ...["--disable-userns", "--as-pid-1", "--uid", "1000", "--gid", "1000", "--ro-bind", "/", "/"],
    ...["--proc", "/proc", "--dev", "/dev", "--", programPath("sh"), "-c", "exit 0"],
  ]);
  if (stderr === undefined) return found(name, "bubblewrap made a sandbox");
  return { name, ok: false, required: true, detail: stderr, remedy: await namespaceRemedy(stderr) };
}

/** The known ways in which distributions and container engines forbid namespaces to plain users. */
async function namespaceRemedy(stderr: string): Promise<string> {
  if ((await readSetting("kernel/apparmor_restrict_unprivileged_userns")) === "1") {
    return "Ubuntu's AppArmor forbids it. Allow it for bubblewrap with an AppArmor profile for /usr/bin/bwrap (userns,), or for all: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if ((await readSetting("kernel/unprivileged_userns_clone")) === "0") {
    return "sudo sysctl kernel.unprivileged_userns_clone=1";
  }
  if ((await readSetting("user/max_user_namespaces")) === "0")
    return "sudo sysctl user.max_user_namespaces=15000";
  if (/Unknown option|--disable-userns/.test(stderr)) return "Install bubblewrap 0.8 or newer";
  if (/proc/.test(stderr)) {
    return "This looks like a container that hides parts of /proc: run it with an unmasked /proc (Docker: --security-opt systempaths=unconfined --security-opt seccomp=unconfined), or use the docker provider";
  }
  return "Let this user make user namespaces; inside a container: allow nested namespaces (Docker: --security-opt seccomp=unconfined), or use the docker provider";
}

async function checkDataDir(layout: Layout): Promise<Check> {
  const name = "data dir";
  makeLayout(layout);
  const stderr = await failureOf([...asSandboxUser(), programPath("sh"), "-c", 'cd "$0"', layout.instances]);
  if (stderr === undefined) return found(name, layout.dataDir);
  return {
    name,
    ok: false,
    required: true,
    detail: `${layout.dataDir} cannot be reached by the users that sandboxes run as`,
    remedy: "Choose a data dir that is not below root's home, such as /var/lib/holdfast",
  };
}

async function checkBundle(bundle: string): Promise<Check> {
  for (const part of ["ld.so", "lib", "keeper"]) await access(join(bundle, part));
  return found("keeper", bundle);
}

function checkFullNetwork(): Check {
  const name = 'network "full"';
  const problem = fullNetworkProblem();
  if (problem === undefined) return { ...found(name, "pasta can be used"), required: false };
  return { name, ok: false, required: false, ...problem };
}

function checkLimits(host: CgroupHost): Check {
  if (host.kind !== "unavailable") return { ...found("limits", host.detail), required: false };
  const remedy = isRoot()
    ? "Mount the cgroup file system writable"
    : 'Start the server from a login session with systemd ("loginctl enable-linger" keeps it), or as root';
  return { name: "limits", ok: false, required: false, detail: host.detail, remedy };
}

function asSandboxUser(): string[] {
  if (!isRoot()) return [];
  const id = String(PROBE_UID);
  return [programPath("setpriv"), "--reuid", id, "--regid", id, "--clear-groups", "--no-new-privs", "--"];
}

function found(name: string, detail: string): Check {
  return { name, ok: true, required: true, detail };
}

/** A check that could not even be made is a failed one: the list is the answer. */
async function guarded(name: string, check: () => Promise<Check>): Promise<Check> {
  try {
    return await check();
  } catch (error) {
    return {
      name,
      ok: false,
      required: true,
      detail: error instanceof Error ? error.message : String(error),
    };
  }
}

/** What a command that failed said, or `undefined` if it succeeded. */
async function failureOf(argv: string[]): Promise<string | undefined> {
  const child = Bun.spawn(argv, {
    cwd: "/",
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    env: helperEnvironment(),
  });
  const stderr = await new Response(child.stderr).text();
  return (await child.exited) === 0 ? undefined : stderr.trim() || `exit code ${child.exitCode}`;
}

/** Not by `Bun.file`, which takes a file of the kernel, whose size is 0, for empty. */
async function readSetting(name: string): Promise<string | undefined> {
  const text = await readFile(`/proc/sys/${name}`, "utf8").catch(() => undefined);
  return text?.trim(); // `undefined`: a kernel without this switch
}
