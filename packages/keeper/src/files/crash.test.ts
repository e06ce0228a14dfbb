import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batchHeader } from "@holdfast/protocol/file-batch";
import { TAR_END, tarHeader } from "@holdfast/protocol/tar";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

const FILES = 150;
const FILE_BYTES = 8192;

/** Every file is full of one letter, so that a mixture shows. */
function archiveOf(letter: string): Uint8Array<ArrayBuffer> {
  const data = Buffer.alloc(FILE_BYTES, letter);
  const facts = {
    type: "file",
    sizeBytes: FILE_BYTES,
    mode: 0o644,
    mtime: 0,
    target: Buffer.alloc(0),
  } as const;
  const files = Array.from({ length: FILES }, (_, i) =>
    tarHeader({ ...facts, path: Buffer.from(`tree/${i % 7}/f${i}`) }),
  );
  return Buffer.concat([...files.flatMap((header) => [header, data]), TAR_END]);
}

/** The same files as a batch, all of them new. */
function batchOf(letter: string): Uint8Array<ArrayBuffer> {
  const data = Buffer.alloc(FILE_BYTES, letter);
  const facts = { op: "write", expected: null, mode: "0644", sizeBytes: FILE_BYTES };
  const headers = Array.from({ length: FILES }, (_, i) =>
    batchHeader({ ...facts, path: `batch-${letter}/${i % 7}/f${i}` }),
  );
  return Buffer.concat(headers.flatMap((header) => [header, data]));
}

test("kill -9 at any moment of writes, batches and tar uploads: each file is old or new, and nothing half-made is left", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-keeper-"));
  const work = join(dir, "work");
  mkdirSync(work);
  const path = encodeURIComponent(work);
  const seen = new Set<string>();
  let running: TestKeeper | undefined;
  try {
    // A whole upload of this size takes some 30 ms here: kills fall before, into and after it.
    for (const [round, letter] of [..."abcdefgh"].entries()) {
      const keeper = await startTestKeeper({ dir });
      running = keeper;
      // The first call after a start waits for the clearing up.
      expect((await keeper.call(`/v1/files/stat?path=${path}`)).status).toBe(200);
      for (const letters of contents(work)) seen.add(letters);
      expect([...seen].filter((letters) => letters.length !== 1)).toEqual([]);
      expect(namesBelow(work).filter((name) => name.includes("holdfast"))).toEqual([]);
      expect(round === 0 ? [] : readdirSync(join(keeper.boot.stateDir, "files/pending"))).toEqual([]);
      const sent = [
        keeper.request(`/v1/files/tar?path=${path}`, { method: "PUT", body: archiveOf(letter) }),
        keeper.request(`/v1/files/batch?root=${path}`, { method: "POST", body: batchOf(letter) }),
        keeper.request(`/v1/files?path=${path}%2Fbig`, {
          method: "PUT",
          body: Buffer.alloc(20_000_000, letter),
        }),
      ];
      const answers = Promise.allSettled(sent);
      if (round > 0) await Bun.sleep(round * 8);
      else await answers;
      await keeper.crash();
      await answers;
      // As of a kill in the middle of a note: nothing was made yet under its name.
      writeFileSync(join(keeper.boot.stateDir, "files/pending", "0".repeat(24)), '{"dir":"L3R');
    }
    await using last = await startTestKeeper({ dir });
    expect((await last.call(`/v1/files/stat?path=${path}`)).status).toBe(200);
    expect(contents(work).filter((letters) => letters.length !== 1)).toEqual([]);
    expect(namesBelow(work).filter((name) => name.includes("holdfast"))).toEqual([]);
  } finally {
    await running?.crash();
    rmSync(dir, { recursive: true, force: true });
  }
});

/** The letter that each file is full of; `mixed` if it is not. */
function contents(top: string): string[] {
  const files = namesBelow(top).filter((name) => /(^|\/)(f\d+|big)$/.test(name));
  return files.map((name) => {
    const bytes = readFileSync(join(top, name));
    const letter = String.fromCharCode(bytes[0] ?? 0);
    return bytes.equals(Buffer.alloc(bytes.length, letter)) ? letter : "mixed";
  });
}

function namesBelow(top: string): string[] {
  return readdirSync(top, { recursive: true, encoding: "utf8" });
}
