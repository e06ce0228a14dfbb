import { readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";

const root = join(import.meta.dir, "..");

/** Of these packages, without their tests. */
export function sourceFiles(...packages: string[]): string[] {
  return packages.flatMap((name) =>
    readdirSync(join(root, "packages", name, "src"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.includes(".test."))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort(),
  );
}

/** What is built from the same is the same: of everything that goes in, with the versions of what builds it. */
export function hashOf({ files, settings }: { files: readonly string[]; settings: unknown }): string {
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(JSON.stringify([Bun.version, Bun.revision, process.arch, settings]));
  for (const file of [...files, join(root, "package-lock.json")]) {
    const bytes = readFileSync(file);
    const name = file.startsWith(root) ? relative(root, file) : basename(file);
    hasher.update(`\0${name}\0${bytes.length}\0`).update(bytes);
  }
  return hasher.digest("hex").slice(0, 16);
}
