import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeParts } from "./node.ts";
import { SyncState } from "./state.ts";

test("between batches the books are written when a quarter of them is new, and at the end in any case", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-books-"));
  try {
    const file = join(dir, "books.json");
    const state = await SyncState.open(await nodeParts(), file);
    const note = (name: string) =>
      state.note(name, { id: "1", etag: "2", local: { size: 0, mtimeNs: "0", ino: "0", hashedAt: 0 } });
    const written = () => Object.keys(JSON.parse(readFileSync(file, "utf8")).files).join("");
    for (const name of "abcdef") note(name);
    await state.saveIfWorthIt();
    note("g");
    await state.saveIfWorthIt();
    expect(written()).toBe("abcdef");
    note("h");
    await state.saveIfWorthIt();
    expect(written()).toBe("abcdefgh");
    state.forget("a");
    await state.saveIfWorthIt();
    expect(written()).toBe("abcdefgh");
    await state.save();
    expect(written()).toBe("bcdefgh");
  } finally {
    rmSync(dir, { recursive: true });
  }
});
