/** What a sandbox's own world looks like: paths and the user as seen inside. */
export const inside = {
  uid: 1000,
  user: "user",
  home: "/home/user",
  workspace: "/workspace",
  bin: "/.holdfast/bin",
  loader: "/.holdfast/bin/ld.so",
  state: "/.holdfast/state",
  run: "/.holdfast/run",
  socket: "/.holdfast/run/keeper.sock",
  memoryCgroup: "/.holdfast/cgroup",
} as const;

/** The file descriptor through which the keeper gets its secret: in no argument and in no environment. */
export const BOOT_FD = 3;
/** The file descriptor from which bubblewrap reads the system call filter. */
export const SECCOMP_FD = 4;

/**
 * The keeper's own arguments end with who it is, for whoever finds it on the host, and with its name. In arguments and
 * not in the environment, which nobody but root may read of a keeper. It is no secret.
 */
export function keeperArgv({ name, marker }: { name: string; marker: string }): string[] {
  return [
    ...[inside.loader, "--library-path", `${inside.bin}/lib`, `${inside.bin}/keeper`],
    ...["--boot-fd", String(BOOT_FD), MARKER_OPTION, marker, name],
  ];
}

const MARKER_OPTION = "--marker";
/** Where the release before had it: in the environment, which bubblewrap was told by its arguments. */
const OLDER_MARKER = "HOLDFAST_INSTANCE";

/** In the arguments of the keeper, or of any program that starts it, which end with the keeper's. */
export function markerIn(argv: readonly string[]): string | undefined {
  const at = argv.findLastIndex((argument) => argument === MARKER_OPTION || argument === OLDER_MARKER);
  return at === -1 ? undefined : argv[at + 1];
}

/** The first layer of every command's environment. */
export const baseEnvironment: Readonly<Record<string, string>> = {
  PATH: `${inside.home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
  HOME: inside.home,
  USER: inside.user,
  LOGNAME: inside.user,
  SHELL: "/bin/bash",
  LANG: "C.UTF-8",
};
