import { afterAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { paddingOf, TAR_END, type TarEntry, tarHeader } from "@holdfast/protocol/tar";
import { mergeInto } from "./merge.ts";
import { unpack } from "./unpack.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-unpack-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let count = 0;
function fresh(): string {
  const top = join(dir, String(count++));
  mkdirSync(top);
  return top;
}

const file = (path: string, data = "x") => ({ path, type: "file", data }) as const;
const symlink = (path: string, target: string) => ({ path, type: "symlink", target }) as const;
const link = (path: string, target: string) => ({ path, type: "link", target }) as const;
const directory = (path: string) => ({ path, type: "directory" }) as const;

// What a hostile keeper could send to whoever copies out.
test.each<[string, Given[], RegExp]>([
  ["..", [file("a/../../evil")], /leads out/],
  ["an absolute name", [file("/tmp/holdfast-evil")], /leads out/],
  ["a file through a symlink", [symlink("s", ".."), file("s/evil")], /no directory/],
  ["a directory through a symlink", [symlink("s", ".."), directory("s/evil/")], /no directory/],
  ["a symlink through a symlink", [symlink("s", ".."), symlink("s/evil", "x")], /no directory/],
  ["a hard link to outside", [link("evil", "/etc/passwd")], /leads out/],
  ["a hard link by ..", [link("evil", "../../etc/passwd")], /leads out/],
  ["a hard link through a symlink", [symlink("s", "/etc"), link("evil", "s/passwd")], /no earlier file/],
  ["a hard link to a symlink", [symlink("s", "/etc/passwd"), link("evil", "s")], /no earlier file/],
  ["the same file twice", [file("evil"), file("./evil")], /twice/],
  ["a file over a symlink", [symlink("evil", "/etc/passwd"), file("evil")], /twice/],
  ["a directory over a file", [file("evil"), directory("evil/")], /no directory/],
])("refused, and nothing is written outside: %s", async (_, entries, why) => {
  const top = fresh();
  const inner = join(top, "in");
  mkdirSync(inner);
  await expect(unpack(tar(entries), inner)).rejects.toThrow(why);
  expect([readdirSync(top), existsSync("/tmp/holdfast-evil")]).toEqual([["in"], false]);
});

test("trees are merged: what else is there stays, and what cannot be merged changes nothing", async () => {
  const [draft, into, outside] = [fresh(), fresh(), fresh()];
  mkdirSync(join(into, "d"));
  writeFileSync(join(into, "d/old"), "old");
  writeFileSync(join(into, "d/both"), "old");
  const { finish } = await unpack(tar([directory("d/"), file("d/both", "new"), file("e/f", "f")]), draft);
  mergeInto(draft, into);
  finish(into);
  const texts = ["d/old", "d/both", "e/f"].map((name) => readFileSync(join(into, name), "utf8"));
  expect(texts).toEqual(["old", "new", "f"]);
  for (const bad of [file("d"), directory("d/both/"), file("z/evil")]) {
    const other = fresh();
    await unpack(tar([file("a-first"), bad]), other);
    rmSync(join(into, "z"), { force: true });
    await Bun.$`ln -s ${outside} ${join(into, "z")}`;
    expect(() => mergeInto(other, into)).toThrow(/is there already/);
    expect([readdirSync(into).sort(), readdirSync(outside)]).toEqual([["d", "e", "z"], []]);
  }
});

type Given = Pick<TarEntry, "type"> & {
  readonly path: string;
  readonly target?: string;
  readonly data?: string;
};

async function* tar(entries: readonly Given[]): AsyncGenerator<Uint8Array> {
  for (const { path, type, target = "", data = "" } of entries) {
    const [name, leadsTo, bytes] = [path, target, data].map((text) => Buffer.from(text)) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    yield tarHeader({ path: name, type, target: leadsTo, sizeBytes: bytes.length, mode: 0o755, mtime: 0 });
    yield bytes;
    yield Buffer.alloc(paddingOf(bytes.length));
  }
  yield TAR_END;
}
