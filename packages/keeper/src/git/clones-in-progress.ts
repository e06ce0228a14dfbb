import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Which directories are being cloned into, on disk: a keeper that follows one that died removes what is half-made. */
export function clonesInProgress(stateDir: string) {
  const dir = join(stateDir, "clones");
  return {
    add(id: string, path: string): void {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      writeFileSync(join(dir, id), path, { mode: 0o600 });
    },
    remove(id: string): void {
      rmSync(join(dir, id), { force: true });
    },
    removeAll(): void {
      for (const id of namesIn(dir)) {
        const path = readFileSync(join(dir, id), "utf8");
        // The work can write here, too; it could remove its own files anyway, but we do not do it by mistake.
        if (path.endsWith(`.holdfast-clone-${id}`)) rmSync(path, { recursive: true, force: true });
        rmSync(join(dir, id), { force: true });
      }
    },
  };
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
