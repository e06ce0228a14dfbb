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

/** Marks the keeper as ours on the host, with everything that the name does not say. It is no secret. */
export const INSTANCE_VARIABLE = "HOLDFAST_INSTANCE";

export function keeperArgv(name: string): string[] {
  return [
    inside.loader,
    "--library-path",
    `${inside.bin}/lib`,
    `${inside.bin}/keeper`,
    "--boot-fd",
    String(BOOT_FD),
    name,
  ];
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
