import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bwrapArgs, type SandboxView } from "./bwrap-args.ts";
import { userManagerEnvironment } from "./cgroup-host.ts";
import { isRoot } from "./host-user.ts";
import { BOOT_FD, SECCOMP_FD } from "./inside.ts";
import { ownTunNode, pastaCommand } from "./network.ts";
import { helperEnvironment, programPath } from "./programs.ts";

/**
 * The chain of programs between the server and the keeper. Each replaces the one before it (`exec`), so that in the
 * end only pasta (network `full`), bubblewrap and the keeper are left:
 *
 *     sh (claims the launch, joins the control groups) → [systemd-run] → [unshare: own tun device]
 *        → [setpriv: the sandbox's user] → [pasta: network] → sh (opens files) → bwrap → keeper
 *
 * Every one of them has the instance's name as an argument of its own, so that a server that died in between finds
 * them again.
 */
export interface Launcher {
  readonly view: SandboxView;
  readonly uid: number;
  readonly cgroups: readonly string[];
  readonly limitsPrefix: readonly string[];
}

/** In the instance's directory: a file made by the launcher that may go on, of all that were ever started. */
export const CLAIM = "launched";
export const LOG = "launch.log";
/** In the instance's directory: what the launcher opens for the keeper and for bubblewrap. */
export const files = {
  boot: "boot.json",
  seccomp: "seccomp.bpf",
  routes: "routes",
  rules6: "rules6",
} as const;

/**
 * With `set -C` only one of them can make the file. Joining first: a process that was started outside the limits could
 * have children outside them, too.
 */
const FIRST_SCRIPT = `umask 022; set -C; true > "$1" || exit 0; set +C; shift
while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done; shift
exec "$@"`;

/**
 * Opens by path what could have been inherited, because newer versions of pasta close everything but the standard
 * streams. With pasta this shell is root of the new network namespace, and nobody is after it.
 */
const LAST_SCRIPT = `exec ${BOOT_FD}< "$1/${files.boot}" ${SECCOMP_FD}< "$1/${files.seccomp}" || exit 1; shift
if [ -n "$1" ]; then "$1" -6 -batch "$3" & "$1" -batch "$2" && wait $! || exit 1; fi; shift 3
exec "$@"`;

/**
 * Started apart from the server: a Ctrl-C or the end of the server does not reach it. When this returns, it has
 * claimed the launch and can be found by its name, or it has ended.
 */
export async function startLauncher(launcher: Launcher): Promise<Bun.Subprocess> {
  const log = openSync(join(launcher.view.instance, LOG), "a", 0o600);
  try {
    const child = Bun.spawn(launcherArgv(launcher), {
      cwd: "/",
      stdio: ["ignore", log, log],
      detached: true,
      env: { ...helperEnvironment(), ...(launcher.limitsPrefix.length > 0 && userManagerEnvironment()) },
    });
    child.unref();
    // Until then it may still look like the server, whose arguments it has until its `exec` is done.
    const claim = join(launcher.view.instance, CLAIM);
    while (child.exitCode === null && child.signalCode === null && !existsSync(claim)) await sleep(1);
    return child;
  } finally {
    closeSync(log);
  }
}

function launcherArgv({ view, uid, cgroups, limitsPrefix }: Launcher): string[] {
  const sh = programPath("sh");
  const full = view.network === "full";
  return [
    ...[sh, "-c", FIRST_SCRIPT, view.name, join(view.instance, CLAIM), ...cgroups, "--"],
    ...limitsPrefix,
    ...(full ? ownTunNode(view.name) : []),
    ...(isRoot() ? dropRights(uid, view.network) : []),
    ...(full ? pastaCommand() : []),
    ...[sh, "-c", LAST_SCRIPT, view.name, view.instance],
    ...(full
      ? [programPath("ip"), join(view.instance, files.routes), join(view.instance, files.rules6)]
      : ["", "", ""]),
    programPath("bwrap"),
    ...bwrapArgs(view),
  ];
}

/** pasta could not configure its namespace without new privileges there; bubblewrap gives them up in any case. */
function dropRights(uid: number, network: "none" | "full"): string[] {
  return [
    ...[programPath("setpriv"), "--reuid", String(uid), "--regid", String(uid), "--clear-groups"],
    ...(network === "none" ? ["--no-new-privs"] : []),
  ];
}
