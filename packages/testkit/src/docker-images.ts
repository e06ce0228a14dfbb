import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

/** Files of images that need no registry, made from this machine's programs; kept in the build folder. */

const cache = resolve(import.meta.dir, "../../../build/test-images");

/** One static program under all its names: no libc of any kind. */
export function busyboxTar(): Promise<string> {
  return cached("busybox", ["busybox"], (root) => {
    install(root, "busybox", "/bin/busybox");
    const names = Bun.spawnSync([program("busybox"), "--list"])
      .stdout.toString()
      .trim()
      .split("\n");
    for (const name of names) if (name !== "busybox") symlinkSync("busybox", join(root, "bin", name));
  });
}

/** Bash, some of coreutils, and git, with the libraries that they need. */
export function debianTar(): Promise<string> {
  const programs = [
    "bash",
    "cat",
    "echo",
    "env",
    "id",
    "ls",
    "mkdir",
    "rm",
    "sleep",
    "touch",
    "stat",
    "grep",
    "head",
    "git",
  ];
  return cached("debian", programs, (root) => {
    for (const name of programs) {
      install(root, name, `/bin/${name}`);
      for (const library of librariesOf(name)) copy(realpathSync(library), join(root, library));
    }
    symlinkSync("bash", join(root, "bin/sh"));
    symlinkSync("git", join(root, "bin/git-upload-pack"));
    mkdirSync(join(root, "etc"));
    writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/bash\n");
  });
}

/** One program, and no shell. */
export function shellLessTar(): Promise<string> {
  return cached("shell-less", ["busybox"], (root) => install(root, "busybox", "/bin/cat"));
}

/** By what goes in, so that another release of the machine's programs makes another image. */
async function cached(
  name: string,
  programs: readonly string[],
  fill: (root: string) => void,
): Promise<string> {
  const hash = createHash("sha256").update(fill.toString());
  for (const one of programs) hash.update(readFileSync(program(one)));
  const tar = join(cache, `${name}-${hash.digest("hex").slice(0, 12)}.tar`);
  if (existsSync(tar)) return tar;
  const root = mkdtempSync(join(tmpdir(), "holdfast-image-"));
  try {
    fill(root);
    mkdirSync(cache, { recursive: true });
    const draft = `${tar}.${process.pid}`;
    const { exitCode, stderr } = Bun.spawnSync(["tar", "-C", root, "-cf", draft, "."]);
    if (exitCode !== 0) throw new Error(`tar failed: ${stderr}`);
    renameSync(draft, tar);
    return tar;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function install(root: string, name: string, path: string): void {
  copy(realpathSync(program(name)), join(root, path));
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

function librariesOf(name: string): string[] {
  const listed = Bun.spawnSync(["ldd", program(name)]).stdout.toString();
  return [...listed.matchAll(/(?:=> |\t)(\/\S+)/g)].map((match) => match[1] ?? "");
}

function program(name: string): string {
  const path = Bun.which(name);
  if (path === null) throw new Error(`${basename(name)} is not installed`);
  return path;
}
