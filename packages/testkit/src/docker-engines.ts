import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

export type Engine = "docker" | "podman" | "podman-rootless";

/** How a daemon of our own is started. */
export interface EngineCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Control groups that it makes and may leave behind. */
  readonly groups: readonly string[];
}

/** Why there can be none here; `undefined` if there can. */
export function missingDocker(engine: Engine = "docker"): string | undefined {
  if (process.getuid?.() !== 0) return "needs root to start a daemon of its own";
  const missing = Object.entries(programs[engine]).filter(([program]) => Bun.which(program) === null);
  if (missing.length === 0) return undefined;
  const names = missing.map(([program]) => program).join(", ");
  return `needs ${names}: apt-get install ${missing.map(([, name]) => name).join(" ")}`;
}

const common = { busybox: "busybox-static", unshare: "util-linux", setpriv: "util-linux", runc: "runc" };
const programs: Readonly<Record<Engine, Readonly<Record<string, string>>>> = {
  docker: { ...common, dockerd: "docker.io" },
  podman: { ...common, podman: "podman" },
  "podman-rootless": { ...common, podman: "podman", newuidmap: "uidmap", slirp4netns: "slirp4netns" },
};

export function engineCommand(engine: Engine, place: { dir: string; dataRoot: string }): EngineCommand {
  switch (engine) {
    case "docker":
      return dockerCommand(place);
    case "podman":
      return podmanCommand(place);
    case "podman-rootless":
      return rootlessCommand(place);
    default:
      return engine satisfies never;
  }
}

/** Where its socket is. */
export function socketIn(dir: string): string {
  return join(dir, "docker.sock");
}

function dockerCommand({ dir, dataRoot }: { dir: string; dataRoot: string }): EngineCommand {
  const group = basename(dir);
  const config = join(dir, "daemon.json");
  // A socket that the keeper makes is one of the host's, which gVisor allows only if it is told to. Its own network
  // would need a daemon in the host's process namespace.
  const runsc = { path: "runsc", runtimeArgs: ["--host-uds=all", "--network=none"] };
  writeFileSync(config, JSON.stringify({ runtimes: Bun.which("runsc") === null ? {} : { runsc } }));
  const argv = [
    ...[
      "dockerd",
      "--config-file",
      config,
      "--host",
      `unix://${socketIn(dir)}`,
      "--pidfile",
      join(dir, "pid"),
    ],
    ...["--data-root", dataRoot, "--exec-root", join(dir, "exec"), "--cgroup-parent", `/${group}`],
  ];
  return { argv, env: {}, groups: [group] };
}

/** Not its own defaults: it wants limits on open files that not every root may set, and a service manager. */
function podmanCommand({ dir, dataRoot }: { dir: string; dataRoot: string }): EngineCommand {
  const config = join(dir, "containers.conf");
  writeFileSync(
    config,
    `[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "${join(dir, "tmp")}"
volume_path = "${join(dataRoot, "volumes")}"
[network]
network_config_dir = "${join(dir, "networks")}"
`,
  );
  // As Docker does without a word: what is on the loopback device needs no TLS.
  const registries = join(dir, "registries.conf");
  writeFileSync(registries, '[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n');
  const argv = [
    ...["podman", "--root", dataRoot, "--runroot", join(dir, "run")],
    ...["system", "service", "--time", "0", `unix://${socketIn(dir)}`],
  ];
  return {
    argv,
    env: { CONTAINERS_CONF: config, CONTAINERS_REGISTRIES_CONF: registries },
    groups: ["libpod_parent"],
  };
}

/** Any id without rights will do; it need not be in the host's list of users. */
export const ROOTLESS_UID = 64_124;

/** Podman as a plain user whom the host does not know: the lists that say otherwise are seen by the daemon alone. */
function rootlessCommand(place: { dir: string; dataRoot: string }): EngineCommand {
  const { argv, env } = podmanCommand(place);
  const { dir, dataRoot } = place;
  const id = String(ROOTLESS_UID);
  const lists = {
    passwd: `root:x:0:0::/root:/bin/sh\nhf:x:${id}:${id}::${dir}:/bin/sh\n`,
    group: `root:x:0:\nhf:x:${id}:\n`,
    subuid: "hf:200000:65536\n",
    subgid: "hf:200000:65536\n",
  };
  for (const [name, text] of Object.entries(lists)) writeFileSync(join(dir, name), text);
  for (const name of ["tmp", "networks", "run", "xdg"]) mkdirSync(join(dir, name));
  mkdirSync(dataRoot, { recursive: true });
  for (const owned of [dir, dataRoot, ...["tmp", "networks", "run", "xdg"].map((name) => join(dir, name))]) {
    chownSync(owned, ROOTLESS_UID, ROOTLESS_UID);
  }
  // As on a machine where everybody may have a network device in a namespace of his own.
  const script = `mknod "$0/tun" c 10 200; chmod 666 "$0/tun"; mount --bind "$0/tun" /dev/net/tun
for list in ${Object.keys(lists).join(" ")}; do mount --bind "$0/$list" "/etc/$list"; done
exec setpriv --reuid ${id} --regid ${id} --clear-groups -- "$@"`;
  const [podman = "", ...rest] = argv;
  return {
    // Left to itself it copies whole file systems where it may not see whether the kernel can lay one over another.
    argv: ["sh", "-c", script, dir, podman, "--storage-driver", "overlay", ...rest],
    env: { ...env, HOME: dir, XDG_RUNTIME_DIR: join(dir, "xdg") },
    groups: [],
  };
}
