import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { TAR_END, type TarEntry, tarHeader } from "@holdfast/protocol/tar";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";
import { describeTree, makeOddTree } from "./test-tree.ts";

let keeper: TestKeeper;
let dir: string;
beforeAll(async () => {
  keeper = await startTestKeeper();
  dir = join(keeper.dir, "work");
  mkdirSync(dir);
});
afterAll(() => keeper[Symbol.asyncDispose]());

const url = (path: string, rest = "") => `/v1/files/tar?path=${encodeURIComponent(path)}${rest}`;
const tarOf = async (path: string) => Buffer.from(await (await keeper.request(url(path))).arrayBuffer());
const untar = (path: string, body: BodyInit, rest = "") =>
  keeper.request(url(path, rest), { method: "PUT", body });
const run = (...command: string[]) => {
  const { exitCode, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(stderr.toString());
};

test("a tree with odd names, links, modes, holes and empty things comes back equal", async () => {
  const tree = join(dir, "odd");
  makeOddTree(tree);
  const whole = describeTree(tree);
  const archive = await tarOf(tree);
  expect(archive.length).toBeLessThan(2 * 1024 * 1024); // the 16 MiB of holes are not in it
  expect(await (await untar(join(dir, "back"), archive)).json()).toMatchObject({ entries: whole.size + 1 });
  expect(describeTree(join(dir, "back"))).toEqual(whole);
  // Holes are holes again.
  expect(statSync(join(dir, "back/holes")).blocks * 512).toBeLessThan(4 * 1024 * 1024);
  expect(readdirSync(join(keeper.boot.stateDir, "files/pending"))).toEqual([]);
});

test.each(["gnu", "pax", "ustar"] as const)(
  "what GNU tar writes as %s is read, and ours is read by it",
  async (format) => {
    const tree = join(dir, `gnu-${format}`);
    makeOddTree(tree, { longNames: format !== "ustar" });
    const whole = describeTree(tree);
    const archive = join(dir, `${format}.tar`);
    const sparse = format === "ustar" ? [] : ["--sparse"];
    run("tar", "-C", tree, `--format=${format}`, ...sparse, "-cf", archive, ".");
    expect((await untar(join(dir, `from-${format}`), readFileSync(archive))).status).toBe(200);
    expect(describeTree(join(dir, `from-${format}`))).toEqual(whole);
    writeFileSync(archive, await tarOf(tree));
    mkdirSync(join(dir, `to-${format}`));
    run("tar", "-C", join(dir, `to-${format}`), "-xpf", archive);
    expect(describeTree(join(dir, `to-${format}`))).toEqual(whole);
  },
  120_000,
);

test("gzip is taken, a single file has its name, and one tree is merged into another", async () => {
  mkdirSync(join(dir, "merge/kept"), { recursive: true });
  writeFileSync(join(dir, "merge/kept/old"), "old");
  writeFileSync(join(dir, "merge/replaced"), "old");
  const archive = tar([
    { path: "kept/new", data: "new" },
    { path: "replaced", data: "new" },
    { path: "fresh/f", data: "f" },
  ]);
  expect((await untar(join(dir, "merge"), Bun.gzipSync(archive))).status).toBe(200);
  const texts = ["kept/old", "kept/new", "replaced", "fresh/f"].map((name) =>
    readFileSync(join(dir, "merge", name), "utf8"),
  );
  expect(texts).toEqual(["old", "new", "new", "f"]);
  const one = await tarOf(join(dir, "merge/replaced"));
  expect((await untar(join(dir, "one"), one)).status).toBe(200);
  expect(readdirSync(join(dir, "one"))).toEqual(["replaced"]);
});

test.each<[string, Uint8Array<ArrayBuffer>, RegExp]>([
  ["..", tar([{ path: "a/../../evil", data: "x" }]), /leads out by \.\./],
  ["an absolute name", tar([{ path: "/tmp/evil", data: "x" }]), /absolute/],
  [
    "a file through a symlink",
    tar([
      { path: "s", target: "/tmp", type: "symlink" },
      { path: "s/evil", data: "x" },
    ]),
    /symlink/,
  ],
  [
    "a directory through a symlink",
    tar([
      { path: "s", target: "..", type: "symlink" },
      { path: "s/evil/", type: "directory" },
    ]),
    /symlink/,
  ],
  [
    "a symlink through a symlink",
    tar([
      { path: "s", target: "..", type: "symlink" },
      { path: "s/evil", target: "x", type: "symlink" },
    ]),
    /symlink/,
  ],
  ["a hard link to outside", tar([{ path: "evil", target: "/etc/passwd", type: "link" }]), /absolute/],
  ["a hard link by ..", tar([{ path: "evil", target: "../../etc/passwd", type: "link" }]), /leads out/],
  [
    "a hard link through a symlink",
    tar([
      { path: "s", target: "/etc", type: "symlink" },
      { path: "evil", target: "s/passwd", type: "link" },
    ]),
    /symlink/,
  ],
  [
    "a hard link to a symlink",
    tar([
      { path: "s", target: "/etc/passwd", type: "symlink" },
      { path: "evil", target: "s", type: "link" },
    ]),
    /no file/,
  ],
  [
    "a hard link to what comes later",
    tar([
      { path: "evil", target: "later", type: "link" },
      { path: "later", data: "x" },
    ]),
    /not before it/,
  ],
  ["a device", raw(tar([{ path: "evil", data: "" }]), "3"), /a device/],
  ["a block device", raw(tar([{ path: "evil", data: "" }]), "4"), /a device/],
  ["a pipe", raw(tar([{ path: "evil", data: "" }]), "6"), /a pipe/],
  ["something unknown", raw(tar([{ path: "evil", data: "" }]), "Q"), /unknown/],
  ["a name of 10,000 characters", tar([{ path: "x".repeat(10_000), data: "x" }]), /too long/],
  [
    "a path of 10,000 characters",
    tar([{ path: `${"x".repeat(99)}/`.repeat(100), type: "directory" }]),
    /too long/,
  ],
  [
    "the same file twice",
    tar([
      { path: "evil", data: "1" },
      { path: "./evil", data: "2" },
    ]),
    /twice/,
  ],
  [
    "a file over a symlink",
    tar([
      { path: "evil", target: "/etc", type: "symlink" },
      { path: "evil", data: "2" },
    ]),
    /twice/,
  ],
  [
    "a file where a directory is",
    tar([
      { path: "evil/", type: "directory" },
      { path: "evil", data: "2" },
    ]),
    /twice/,
  ],
  [
    "a file in a file",
    tar([
      { path: "evil", data: "1" },
      { path: "evil/more", data: "2" },
    ]),
    /no directory/,
  ],
  ["no name", tar([{ path: ".", data: "1" }]), /no name/],
  ["what is no archive", Buffer.alloc(2048, "x"), /no tar archive/],
  ["nothing", Buffer.alloc(0), /no end mark/],
  [
    "an archive that is cut short",
    tar([{ path: "evil", data: "x".repeat(5000) }]).subarray(0, 2048),
    /cut short/,
  ],
  ["one without an end", tar([{ path: "evil", data: "x" }]).subarray(0, 1024), /no end mark/],
  [
    "damaged gzip",
    Bun.gzipSync(tar([{ path: "evil", data: crypto.getRandomValues(Buffer.alloc(9000)) }])).subarray(0, 5000),
    /gzip|cut short/,
  ],
])("refused, and nothing is written: %s", async (name, archive, why) => {
  const into = join(dir, "attacks");
  mkdirSync(into, { recursive: true });
  const reply = await untar(into, archive);
  expect([name, reply.status]).toEqual([name, 400]);
  expect((await reply.json()).error.message).toMatch(why);
  expect(readdirSync(into)).toEqual([]);
  expect(existsSync("/tmp/evil")).toBe(false);
});

test("bombs meet their limit before they fill anything", async () => {
  const into = join(dir, "bombs");
  mkdirSync(into);
  const zeros = Bun.gzipSync(tar([{ path: "zeros", data: Buffer.alloc(32 * 1024 * 1024) }]));
  const hole = tar([
    { path: "hole", data: "", sizeBytes: 2 ** 40, sparse: [{ offset: 2 ** 40, length: 0 }] },
  ]);
  const many = tar(Array.from({ length: 50 }, (_, i) => ({ path: `f${i}`, data: "" })));
  for (const [archive, limit] of [
    [zeros, "&maxBytes=1000000"],
    [hole, "&maxBytes=1000000"],
    [many, "&maxEntries=40"],
  ] as const) {
    const reply = await untar(into, archive, limit);
    expect([reply.status, (await reply.json()).error.code]).toEqual([413, "too_large"]);
  }
  expect(readdirSync(into)).toEqual([]);
});

test("what is there already is not followed, and what cannot be merged changes nothing", async () => {
  const into = join(dir, "into");
  const outside = join(dir, "outside");
  mkdirSync(join(into, "d"), { recursive: true });
  mkdirSync(outside);
  symlinkSync(outside, join(into, "z-link"));
  const through = await untar(
    into,
    tar([
      { path: "a", data: "a" },
      { path: "z-link/evil", data: "x" },
    ]),
  );
  expect([through.status, (await through.json()).error.code]).toEqual([409, "wrong_state"]);
  const over = await untar(
    into,
    tar([
      { path: "a", data: "a" },
      { path: "d", data: "x" },
    ]),
  );
  expect(over.status).toBe(409);
  expect([readdirSync(into).sort(), readdirSync(outside)]).toEqual([["d", "z-link"], []]);
  // A symlink that a file replaces is replaced itself.
  expect((await untar(into, tar([{ path: "z-link", data: "now a file" }]))).status).toBe(200);
  expect([readFileSync(join(into, "z-link"), "utf8"), readdirSync(outside)]).toEqual(["now a file", []]);
});

interface Given extends Partial<Omit<TarEntry, "path" | "target">> {
  readonly path: string;
  readonly target?: string;
  readonly data?: string | Uint8Array;
}

function tar(entries: readonly Given[]): Uint8Array<ArrayBuffer> {
  const blocks = entries.flatMap(({ path, target = "", data = "", ...rest }) => {
    const bytes = Buffer.from(data);
    const facts = { type: "file", sizeBytes: bytes.length, mode: 0o644, mtime: 0, ...rest } as const;
    const header = tarHeader({ ...facts, path: Buffer.from(path), target: Buffer.from(target) });
    return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, TAR_END]);
}

/** The same archive, its first entry of another kind. */
function raw(archive: Uint8Array, letter: string): Uint8Array<ArrayBuffer> {
  const out = Buffer.from(archive);
  out.write(letter, 156);
  out.write("        ", 148);
  const sum = out.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  out.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return out;
}
