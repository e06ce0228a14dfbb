import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Archive, FoundSnapshot, SnapshotNote } from "@holdfast/core";
import { TAR_END, type TarEntry, tarHeader } from "@holdfast/protocol/tar";
import { archiveOf } from "./export.ts";
import { importInto } from "./import.ts";
import { manifestEntry } from "./manifest.ts";
import { measure } from "./pack.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "holdfast-archive-"));
  for (const part of ["from", "to"])
    for (const name of PARTS) mkdirSync(join(dir, part, name), { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const PARTS = ["workspace", "home"];
const NEVER = new AbortController().signal;
const treesIn = (place: string) => PARTS.map((name) => ({ dir: join(dir, place, name), name }));
const note: SnapshotNote = {
  ...{ name: "n", sandboxId: "s", generation: 1, labels: {} },
  origin: "request",
  ...{ spec: { image: "debian", env: { SECRET: "s3cret" } }, createdAt: 0, expiresAt: null },
};

function take(archive: Archive, roomBytes = 2 ** 30) {
  const options = { checksum: true, roomBytes, onProgress: () => undefined, signal: NEVER };
  return importInto(join(dir, "to"), archive, { ...options, trees: treesIn("to"), uid: undefined });
}

test("what goes out comes in again, byte for byte, and no environment goes along", async () => {
  const from = join(dir, "from/workspace");
  const long = "x".repeat(200);
  mkdirSync(join(from, long, long), { recursive: true });
  writeFileSync(join(from, long, long, "deep"), Buffer.alloc(200_000, "a"));
  writeFileSync(Buffer.concat([Buffer.from(`${from}/`), Buffer.from([0xff, 0x0a])]), "odd", { mode: 0o4711 });
  writeFileSync(join(from, "hole"), Buffer.concat([Buffer.alloc(1024 ** 2), Buffer.from("end")]));
  symlinkSync(`/${long}`.repeat(3), join(from, "link"));
  const content = await measure(treesIn("from"), { checksum: true, signal: NEVER });
  const found: FoundSnapshot = { ref: { installationId: "i", snapshotId: "s" }, note, content };
  const bytes = Buffer.from(await new Response(archiveOf(found, treesIn("from"))).arrayBuffer());
  expect(bytes.includes("s3cret")).toBe(false);
  expect(await take(new Response(bytes).body as Archive)).toEqual(content);

  for (const place of ["to/workspace", "to/home"]) rmSync(join(dir, place), { recursive: true });
  for (const name of PARTS) mkdirSync(join(dir, "to", name));
  const cut = new Response(bytes.subarray(0, bytes.length - 2048)).body as Archive;
  await expect(take(cut)).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("cut short"),
  });
  for (const name of PARTS) rmSync(join(dir, "to", name), { recursive: true });
  for (const name of PARTS) mkdirSync(join(dir, "to", name));
  const spoilt = Buffer.from(bytes);
  spoilt[spoilt.indexOf("end\0")] = 0x45;
  await expect(take(new Response(spoilt).body as Archive)).rejects.toMatchObject({
    message: expect.stringContaining("checksum"),
  });
});

const plain = { mode: 0o755, mtime: 0, sizeBytes: 0 };
const at = (path: string): TarEntry => ({
  ...plain,
  path: Buffer.from(path),
  type: "file",
  target: new Uint8Array(0),
});
const parts: TarEntry[] = PARTS.map((name) => ({ ...at(name), type: "directory" }));
const link = (path: string, target: string, type: "symlink" | "link"): TarEntry => ({
  ...at(path),
  type,
  target: Buffer.from(target),
});

const attacks: [what: string, entries: TarEntry[], why: RegExp][] = [
  ["a way up", [...parts, at("workspace/../../evil")], /\. or \.\./],
  ["an absolute name", [...parts, at("/tmp/evil")], /absolute/],
  ["another part", [...parts, at("state/journal")], /outside/],
  ["the manifest again", [...parts, at("manifest.json")], /outside/],
  ["a file for a part", [at("workspace")], /directory/],
  ["a name twice", [...parts, at("workspace/a"), at("workspace/a")], /twice/],
  [
    "through a link",
    [...parts, link("workspace/l", "/tmp", "symlink"), at("workspace/l/evil")],
    /no directory/,
  ],
  ["over a link", [...parts, link("workspace/l", "/tmp/x", "symlink"), at("workspace/l")], /twice/],
  ["a second name of a file outside", [...parts, link("workspace/p", "/etc/passwd", "link")], /absolute/],
  [
    "a second name of nothing",
    [...parts, link("workspace/p", "workspace/q", "link")],
    /nothing that came before/,
  ],
  ["a long name", [...parts, at(`workspace/${"n".repeat(10_000)}`)], /too long/],
  ["too long a name", [...parts, at(`workspace/${"n".repeat(300)}`)], /too long a name/],
  ["a part missing", [{ ...at("workspace"), type: "directory" }], /no home/],
  ["no end of data", [...parts, { ...at("workspace/big"), sizeBytes: 2 ** 40 }], /no room/],
];

test.each(attacks)(
  "an archive with %s is refused, and nothing is written elsewhere",
  async (_what, entries, why) => {
    writeFileSync(join(dir, "canary"), "alive");
    const pieces = [manifestEntry(note, { parts: [], checksum: null }), ...entries.map(tarHeader), TAR_END];
    const archive = new Response(Buffer.concat(pieces)).body as Archive;
    await expect(take(archive)).rejects.toThrow(why);
    expect(readdirSync(dir).sort()).toEqual(["canary", "from", "to"]);
    expect(readdirSync(join(dir, "to")).sort()).toEqual(["home", "workspace"]);
    expect(existsSync("/tmp/evil") || existsSync("/tmp/x")).toBe(false);
  },
);

test("devices, pipes and what is no archive at all are refused", async () => {
  const device = tarHeader(at("workspace/null"));
  device[156] = "3".charCodeAt(0);
  // The sum in the header counts the letter, too.
  device.set(
    Buffer.from(
      (Number.parseInt(Buffer.from(device.subarray(148, 154)).toString(), 8) + 3)
        .toString(8)
        .padStart(6, "0"),
    ),
    148,
  );
  const manifest = manifestEntry(note, { parts: [], checksum: null });
  const bodies = [
    Buffer.concat([manifest, ...parts.map(tarHeader), device, TAR_END]),
    Buffer.from("hello".repeat(1000)),
    Buffer.concat([tarHeader(parts[0] as TarEntry), TAR_END]),
    Buffer.alloc(0),
  ];
  for (const body of bodies)
    await expect(take(new Response(body).body ?? new ReadableStream())).rejects.toMatchObject({
      code: "invalid_argument",
    });
});
