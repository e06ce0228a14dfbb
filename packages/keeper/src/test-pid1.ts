import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KeeperBoot } from "@holdfast/protocol";
import { startTestKeeper, type TestKeeper } from "./test-keeper.ts";

export interface Pid1Options {
  /** Arguments of bubblewrap that make the root file system; without them it is the host's own programs. */
  readonly root?: readonly string[];
  /** Arguments that make the state directory. */
  readonly state?: readonly string[];
  /** What starts bubblewrap. */
  readonly launcher?: readonly string[];
  readonly boot?: Partial<KeeperBoot>;
}

/**
 * The compiled keeper as PID 1 of its own namespaces. Inside, the socket and the state directory are where a provider
 * puts them.
 */
export function startPid1({
  root = hostRoot,
  state,
  launcher = [],
  boot,
}: Pid1Options = {}): Promise<TestKeeper> {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  mkdirSync(join(dir, "run"));
  const argv = [
    ...[...launcher, "bwrap", "--unshare-all", "--as-pid-1", "--new-session", "--cap-drop", "ALL"],
    ...["--uid", "1000", "--gid", "1000", "--clearenv", ...root],
    ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"],
    ...["--ro-bind", keeperBundle(), `${inside}/bin`, "--bind", join(dir, "run"), `${inside}/run`],
    ...(state ?? ["--dir", `${inside}/state`]),
    ...[`${inside}/bin/ld.so`, "--library-path", `${inside}/bin/lib`, `${inside}/bin/keeper`],
    ...["--boot-fd", "3", "hf-test"],
  ];
  const places = { socketPath: `${inside}/run/k.sock`, stateDir: `${inside}/state`, cwd: "/tmp" };
  return startTestKeeper({ dir, argv, boot: { ...places, ...boot }, socketPath: socketOf({ dir }) });
}

/** The keeper's socket as it is seen from outside. */
export function socketOf({ dir }: { readonly dir: string }): string {
  return join(dir, "run/k.sock");
}

const inside = "/.holdfast";
export const hostRoot = [
  ...["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"],
  ...["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"],
];

/** Nothing but busybox, under each of its names. */
export function busyboxRoot(): string[] {
  const busybox = Bun.which("busybox") ?? "";
  const names = Bun.spawnSync([busybox, "--list"]).stdout.toString().trim().split("\n");
  const links = names.filter((name) => name !== "busybox");
  return [
    ...["--ro-bind", busybox, "/bin/busybox"],
    ...links.flatMap((name) => ["--symlink", "busybox", `/bin/${name}`]),
  ];
}

let bundle: string | undefined;

/** Built from the source as it is now; at once if it was built before. */
function keeperBundle(): string {
  bundle ??= build();
  return bundle;
}

function build(): string {
  const script = join(import.meta.dir, "../../../scripts/build-keeper.ts");
  const { stdout, exitCode, stderr } = Bun.spawnSync([process.execPath, script]);
  if (exitCode !== 0) throw new Error(stderr.toString());
  return stdout.toString().trim();
}
