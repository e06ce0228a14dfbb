import { existsSync, readFileSync, statSync } from "node:fs";
import { release, userInfo } from "node:os";
import { join } from "node:path";
import type { Check } from "@holdfast/core";
import { version } from "../../package.json";
import type { Config } from "../config.ts";

/** What we are and where: nothing of it is a sandbox's yet. */
export function examineMachine({ dataDir }: Config): Check[] {
  return [checkVersions(), checkUser(), checkClock(dataDir), checkNamespaceSettings(), ...checkPodman()];
}

// The first kernel with everything that bubblewrap's newer options and our control groups rest upon.
const OLDEST_KERNEL = [5, 4] as const;

function checkVersions(): Check {
  const kernel = release();
  const [major = 0, minor = 0] = kernel.split(".").map(Number);
  const detail = `holdfast ${version}, bun ${Bun.version}, Linux ${kernel}, ${process.arch}`;
  const isOld = major < OLDEST_KERNEL[0] || (major === OLDEST_KERNEL[0] && minor < OLDEST_KERNEL[1]);
  if (!isOld) return { name: "versions", ok: true, required: false, detail };
  const remedy = `Sandboxes are tried on Linux ${OLDEST_KERNEL.join(".")} and newer: update the kernel`;
  return { name: "versions", ok: false, required: false, detail, remedy };
}

function checkUser(): Check {
  const uid = process.getuid?.();
  const detail =
    uid === 0
      ? "root: every sandbox runs as a user of its own"
      : `${nameOfUser()}: a plain user, and sandboxes run as the same one`;
  return { name: "user", ok: true, required: false, detail };
}

/** An id without a name is a user, too. */
function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

// A clock may be corrected by this much without anybody needing to know.
const TOLERATED_MS = 60_000;

/** Deadlines are kept in the machine's time: files that will be written tomorrow say that the clock was set back. */
function checkClock(dataDir: string): Check {
  const now = Date.now();
  const written = ["holdfast.db", "holdfast.db-wal", "lock", "token"]
    .map((name) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.mtimeMs ?? 0)
    .reduce((a, b) => Math.max(a, b), 0);
  const detail = new Date(now).toISOString();
  if (written <= now + TOLERATED_MS) return { name: "clock", ok: true, required: false, detail };
  return {
    name: "clock",
    ok: false,
    required: false,
    detail: `${detail}, but the data dir was last written at ${new Date(written).toISOString()}`,
    remedy: "Set the clock right (sudo timedatectl set-ntp true): sandboxes end by it",
  };
}

const settings = {
  "kernel/apparmor_restrict_unprivileged_userns": "1",
  "kernel/unprivileged_userns_clone": "0",
  "user/max_user_namespaces": "0",
} as const;

/** The switches that forbid namespaces to plain users; whether that hurts is tried below. */
function checkNamespaceSettings(): Check {
  const name = "kernel settings";
  const off = Object.entries(settings).filter(([path, value]) => read(`/proc/sys/${path}`) === value);
  const spoken = (path: string) => path.replace("/", ".");
  if (off.length === 0) return { name, ok: true, required: false, detail: "none forbids user namespaces" };
  return {
    name,
    ok: false,
    required: false,
    detail: off.map(([path, value]) => `${spoken(path)} is ${value}`).join(", "),
    remedy: off
      .map(([path]) => `sudo sysctl ${spoken(path)}=${allowing[path as keyof typeof settings]}`)
      .join("; "),
  };
}

const allowing: Record<keyof typeof settings, string> = {
  "kernel/apparmor_restrict_unprivileged_userns": "0",
  "kernel/unprivileged_userns_clone": "1",
  "user/max_user_namespaces": "15000",
};

/** It speaks Docker's language, and is found only by who says where it is. */
function checkPodman(): Check[] {
  const name = "podman";
  if (process.env.DOCKER_HOST || Bun.which("podman") === null) return [];
  const runtimeDir = process.env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.()}`;
  const socket = [join(runtimeDir, "podman/podman.sock"), "/run/podman/podman.sock"].find(existsSync);
  const own = process.getuid?.() === 0 ? "/run/podman.sock" : join(runtimeDir, "podman.sock");
  const detail =
    socket === undefined
      ? `is installed; to have sandboxes in it: podman system service --time 0 unix://${own}, and DOCKER_HOST=unix://${own}`
      : `is installed; to have sandboxes in it: DOCKER_HOST=unix://${socket}`;
  return [{ name, ok: true, required: false, detail }];
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined; // a kernel without this switch
  }
}
