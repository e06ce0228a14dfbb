import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bwrapArgs, type SandboxView } from "./bwrap-args.ts";
import { joinFile } from "./cgroup.ts";
import { userManagerEnvironment } from "./cgroup-host.ts";
import { isRoot } from "./host-user.ts";
import { BOOT_FD, SECCOMP_FD } from "./inside.ts";
import { ownTunNode, pastaCommand } from "./network.ts";
import { helperEnvironment, programPath } from "./programs.ts";

/**
 * The chain of programs between the server and the keeper. Each replaces the one before it (`exec`), so that in the
 * end only pasta (network `full`), bubblewrap and the keeper are left:
 *
 *     [unshare: own tun device] → sh (claims the launch, joins the control groups) → [systemd-run]
 *        → [setpriv: the sandbox's user] → [pasta: network] → [sh: opens files] → bwrap → keeper
 *
 * It is started as the sandbox's user, unless it has to make a device first. Every one of them has the instance's name
 * as an argument of its own, so that a server that died in between finds them again.
 */
export interface Launcher {
  readonly view: SandboxView;
  readonly uid: number;
  /** Control groups: those to join, and the one to start in. */
  readonly joins: readonly string[];
  readonly startIn: string | undefined;
  readonly limitsPrefix: readonly string[];
}

/**
 * In the instance's directory: a file made by the launcher that may go on, of all that were ever started. It is where
 * the sandbox's user may write, and nothing inside can see it.
 */
export const CLAIM = "tmp/launched";
export const LOG = "launch.log";
/** In the instance's directory: what the launcher opens, and what it says itself. */
export const files = {
  boot: "boot.json",
  routes: "routes",
  rules6: "rules6",
  closedOff: "tmp/closed-off",
  leftOpen: "tmp/left-open",
} as const;

/**
 * With `set -C` only one of them can make the file. Joining first: a process that was started outside the limits could
 * have children outside them, too.
 */
const FIRST_SCRIPT = `umask 022; set -C; true > "$1" || exit 0; set +C; shift
while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift`;

/**
 * Opens by path what could have been inherited, because newer versions of pasta close everything but the standard
 * streams. With pasta this shell is root of the new network namespace, and nobody is after it: it closes the ways to
 * the host's own addresses, and the rest need not wait for that, because a launch is not over before it is done.
 */
const LAST_SCRIPT = `if [ -n "$2" ]; then
  { "$2" -batch "$1/${files.routes}" && "$2" -6 -batch "$1/${files.rules6}" && true > "$1/${files.closedOff}" ||
    true > "$1/${files.leftOpen}"; } &
fi
exec ${BOOT_FD}< "$1/${files.boot}" ${SECCOMP_FD}< "$3" || exit 1; shift 3
exec "$@"`;

/**
 * Started apart from the server: a Ctrl-C or the end of the server does not reach it. When this returns, it has
 * claimed the launch and can be found by its name, or it has ended.
 */
export async function startLauncher(launcher: Launcher): Promise<Bun.Subprocess> {
  const { view, startIn, limitsPrefix } = launcher;
  const { instance, shared } = view;
  const log = openSync(join(instance, LOG), "a", 0o600);
  const given = [join(instance, files.boot), shared.seccomp];
  const inherited = inherits(launcher) ? given.map((file) => openSync(file, "r")) : [];
  try {
    const child = Bun.spawn(launcherArgv(launcher), {
      cwd: "/",
      stdio: ["ignore", log, log, ...inherited],
      detached: true,
      env: { ...helperEnvironment(), ...(limitsPrefix.length > 0 && userManagerEnvironment()) },
      ...(startIn !== undefined && { cgroup: startIn }),
      ...(isRoot() && tunNode(view) === undefined && { uid: launcher.uid, gid: launcher.uid }),
    });
    child.unref();
    // Until then it may still look like the server, whose arguments it has until its `exec` is done.
    const claim = join(instance, CLAIM);
    while (child.exitCode === null && child.signalCode === null && !existsSync(claim)) await sleep(1);
    return child;
  } finally {
    for (const fd of [log, ...inherited]) closeSync(fd);
  }
}

function launcherArgv(launcher: Launcher): string[] {
  const { view, uid, joins, limitsPrefix } = launcher;
  const sh = programPath("sh");
  const own = tunNode(view);
  const full = view.network === "full";
  const first = [FIRST_SCRIPT, ...(own === undefined ? [] : [own.script]), 'exec "$@"'].join("\n");
  const ip = full ? programPath("ip") : "";
  const last = [sh, "-c", LAST_SCRIPT, view.name, view.instance, ip, view.shared.seccomp];
  return [
    ...(own?.prefix ?? []),
    ...[sh, "-c", first, view.name, join(view.instance, CLAIM), ...joins.map(joinFile), "--"],
    ...limitsPrefix,
    ...(own === undefined ? [] : dropRights(uid)),
    ...(full ? pastaCommand() : []),
    ...(inherits(launcher) ? [] : last),
    programPath("bwrap"),
    ...bwrapArgs(view),
  ];
}

/** Nothing comes between that might close what the launcher was given. */
function inherits({ view, limitsPrefix }: Launcher): boolean {
  return view.network === "none" && limitsPrefix.length === 0;
}

function tunNode({ network }: SandboxView): ReturnType<typeof ownTunNode> {
  return network === "full" ? ownTunNode() : undefined;
}

/** Not "no new privileges": pasta could not configure its namespace. Bubblewrap gives them up in any case. */
function dropRights(uid: number): string[] {
  return [programPath("setpriv"), "--reuid", String(uid), "--regid", String(uid), "--clear-groups"];
}
