import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { newSecret } from "./ids.ts";

/**
 * The API token: made at the first start, readable by its owner alone, and changed by whoever has it. What is in the
 * file counts from the moment that it is there, because another server on the same data dir may have changed it.
 */
export class Token {
  readonly path: string;
  readonly #given: string | undefined;
  #known: { token: string; stamp: string } | undefined;

  /** `given` is the environment's, which wins. */
  constructor(dataDir: string, { given }: { given: string | undefined }) {
    this.path = join(dataDir, "token");
    this.#given = given;
    if (!existsSync(this.path)) makeToken(this.path);
    chmodSync(this.path, 0o600);
  }

  current(): string {
    if (this.#given !== undefined) return this.#given;
    const { ino, mtimeMs } = statSync(this.path);
    const stamp = `${ino} ${mtimeMs}`;
    if (this.#known?.stamp !== stamp) this.#known = { token: readFileSync(this.path, "utf8").trim(), stamp };
    return this.#known.token;
  }

  /** Another one, from now on; the old one is worth nothing. After a crash it is the old or the new, whole. */
  rotate(): string {
    if (this.#given !== undefined) throw fixed();
    const draft = newDraft(this.path);
    renameSync(draft, this.path);
    return this.current();
  }
}

/** Of servers that share the data dir and start at the same time, one makes it for all. */
function makeToken(path: string): void {
  const draft = newDraft(path);
  try {
    // Unlike a rename, this does not take the place of one that another has just made.
    linkSync(draft, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    unlinkSync(draft);
  }
}

function newDraft(path: string): string {
  const draft = `${path}.${process.pid}.new`;
  const fd = openSync(draft, "w", 0o600);
  writeFileSync(fd, `${newSecret()}\n`);
  fsyncSync(fd);
  closeSync(fd);
  return draft;
}

function fixed(): HoldfastError {
  return new HoldfastError("wrong_state", "the server was given its token by HOLDFAST_TOKEN", {
    hint: "change it where the server is started, and restart it; or leave it out there, and the server keeps one itself",
    started: "no",
  });
}
