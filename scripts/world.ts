import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";

/** Everything on this machine that a sandbox could leave behind, one line each. */
export function lookAtTheWorld(): Set<string> {
  return new Set([...processes(), ...mounts(), ...cgroups(), ...temporary()]);
}

export function difference(before: Set<string>, after: Set<string>): string[] {
  return [...after].filter((line) => !before.has(line)).sort();
}

/** Processes of sandboxes and servers; not the shells and editors of whoever sits at this machine. */
function processes(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => `process ${pid}: ${commandLine(pid)}`)
    .filter((line) =>
      /\bbwrap\b|\bpasta\b|\/\.holdfast\/|packages\/(server|keeper)\/src\/main|hf-sbx/.test(line),
    );
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").slice(0, 300);
  } catch {
    return ""; // it ended while we looked
  }
}

function mounts(): string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => /holdfast/.test(line))
    .map((line) => `mount: ${line}`);
}

function cgroups(): string[] {
  const found = new Bun.Glob("**/*{holdfast,hf-sbx}*").scanSync({ cwd: "/sys/fs/cgroup", onlyFiles: false });
  try {
    // The group that all of them are in stays: another server may be about to make one in it.
    return [...found].filter((path) => !/(^|\/)holdfast$/.test(path)).map((path) => `cgroup: ${path}`);
  } catch {
    return []; // no cgroup file system here
  }
}

function temporary(): string[] {
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith("holdfast-") || name.startsWith("hf-"))
    .map((name) => `directory: ${name}`);
}
