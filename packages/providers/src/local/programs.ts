import { HoldfastError } from "@holdfast/protocol";

/** Service managers often start a server with a PATH that lacks the sbin directories. */
const STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The Debian package and the remedy for each program of the host that we start. */
const packageOf = {
  bwrap: "bubblewrap",
  pasta: "passt",
  ip: "iproute2",
  setpriv: "util-linux",
  unshare: "util-linux",
  mount: "mount",
  mknod: "coreutils",
  cp: "coreutils",
  du: "coreutils",
  sync: "coreutils",
  rm: "coreutils",
  chmod: "coreutils",
  sh: "dash",
  "systemd-run": "systemd",
} as const;

export type Program = keyof typeof packageOf;

export function findProgram(name: Program): string | undefined {
  return Bun.which(name, { PATH: `${process.env.PATH ?? ""}:${STANDARD_PATH}` }) ?? undefined;
}

export function programPath(name: Program): string {
  const path = findProgram(name);
  if (path !== undefined) return path;
  throw new HoldfastError("unsupported", `the program "${name}" is not installed on this machine`, {
    hint: `${installHint(name)}, then try again; "holdfast doctor" checks everything that is needed.`,
  });
}

export function installHint(name: Program): string {
  return `Install the package ${packageOf[name]} (Debian, Ubuntu: apt install ${packageOf[name]})`;
}

/** For our own helpers outside the sandbox: nothing of the server's environment but where programs are. */
export function helperEnvironment(): Record<string, string> {
  return { PATH: STANDARD_PATH, LC_ALL: "C" };
}
