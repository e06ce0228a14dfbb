import { closeSync, fsync, openSync, renameSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";

const sync = promisify(fsync);

/** After this the file is there whole or not at all, also after a power cut. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const next = `${path}.new`;
  const file = openSync(next, "w", 0o600);
  try {
    writeFileSync(file, text);
    await sync(file);
  } finally {
    closeSync(file);
  }
  renameSync(next, path);
}

export function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
