import { HoldfastError } from "@holdfast/protocol/errors";
import type { NodeParts } from "./node.ts";

/** One file as it was on both sides when it was last synced. */
export interface Noted {
  /** Of its content, and of whether it may be executed; of a link, where it leads. */
  readonly id: string;
  readonly etag: string;
  readonly local: LocalStamp;
}

/** By which a file that was not touched is known without reading it. */
export interface LocalStamp {
  readonly size: number;
  readonly mtimeNs: string;
  readonly ino: string;
  /** When it was hashed, in milliseconds. */
  readonly hashedAt: number;
}

// Books are written again when this part of them is new. What is lost with a client that is killed is found again by its
// hash; so a quarter of that work is the price.
const WORTH_A_SHARE = 4;

/**
 * What is known of earlier syncs of two directories, in a file beside neither. It is written whole, by a rename, and
 * has only what was seen to be done: whatever fails is done again.
 */
export class SyncState {
  readonly files: Map<string, Noted>;
  readonly #node: NodeParts;
  readonly #file: string;
  #unsaved = 0;

  private constructor(node: NodeParts, file: string, files: Map<string, Noted>) {
    this.#node = node;
    this.#file = file;
    this.files = files;
  }

  static async open(node: NodeParts, file: string): Promise<SyncState> {
    const text = await node.fs.readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
    return new SyncState(node, file, text === undefined ? new Map() : filesIn(text, file));
  }

  note(path: string, noted: Noted): void {
    this.files.set(path, noted);
    this.#unsaved += 1;
  }

  forget(path: string): void {
    this.files.delete(path);
    this.#unsaved += 1;
  }

  /** Between two batches. Written whole each time, large books would take longer than the files that are noted. */
  async saveIfWorthIt(): Promise<void> {
    if (this.#unsaved * WORTH_A_SHARE >= this.files.size) await this.save();
  }

  async save(): Promise<void> {
    if (this.#unsaved === 0) return;
    const { fs, path, crypto } = this.#node;
    const saving = this.#unsaved;
    await fs.mkdir(path.dirname(this.#file), { recursive: true, mode: 0o700 });
    const temporary = `${this.#file}.${crypto.randomUUID()}`;
    const text = JSON.stringify({ version: 1, files: Object.fromEntries(this.files) });
    try {
      await fs.writeFile(temporary, text, { mode: 0o600, flush: true });
      await fs.rename(temporary, this.#file);
    } catch (error) {
      await fs.rm(temporary, { force: true });
      throw error;
    }
    this.#unsaved -= saving;
  }
}

/** Where the state of these two directories is kept, unless somebody says so. */
export function defaultStateFile(
  { path, os, crypto }: NodeParts,
  key: { url: string; sandbox: string; local: string; remote: string },
): string {
  const base = process.env.XDG_STATE_HOME || path.join(os.homedir(), ".local", "state");
  const hash = crypto
    .createHash("sha256")
    .update(JSON.stringify(Object.values(key)))
    .digest("hex");
  return path.join(base, "holdfast", "sync", `${hash.slice(0, 32)}.json`);
}

function filesIn(text: string, file: string): Map<string, Noted> {
  try {
    const { version, files } = JSON.parse(text);
    if (version === 1) return new Map(Object.entries(files as Record<string, Noted>));
  } catch {
    // Not ours, or damaged: told below.
  }
  throw new HoldfastError("invalid_argument", `${file} is not the state of a sync`, {
    hint: "remove it to begin anew: then files that differ are conflicts, and nothing is overwritten",
    started: "no",
  });
}
