import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TAR_END, tarHeader } from "@holdfast/protocol/tar";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

let keeper: TestKeeper;
let dir: string;
let outside: string;
beforeAll(async () => {
  keeper = await startTestKeeper();
  dir = join(keeper.dir, "work");
  outside = join(keeper.dir, "outside");
  mkdirSync(join(dir, "inner"), { recursive: true });
  mkdirSync(outside);
  writeFileSync(join(outside, "precious"), "precious");
});
afterAll(() => keeper[Symbol.asyncDispose]());

/** Somebody inside who swaps this directory for a link to `outside` and back, until disposed. */
function swapping(pattern: string): AsyncDisposable {
  const argv = ["python3", join(import.meta.dir, "../../fixtures/swap.py"), outside, join(dir, pattern)];
  const swapper = Bun.spawn(argv, { stdio: ["ignore", "ignore", "inherit"] });
  return {
    async [Symbol.asyncDispose]() {
      swapper.kill("SIGKILL");
      await swapper.exited;
    },
  };
}

const query = (path: string) => `path=${encodeURIComponent(path)}&root=${encodeURIComponent(dir)}`;

/** Tries until both have happened: it went well, and it was refused because of a swap. */
async function untilBoth(attempt: () => Promise<Response>): Promise<void> {
  const seen = new Set<boolean>();
  for (let tries = 0; tries < 20_000 && (seen.size < 2 || tries < 300); tries++) {
    const reply = await attempt();
    seen.add(reply.ok);
    await reply.body?.cancel();
    expect(readdirSync(outside)).toEqual(["precious"]);
  }
  expect(seen.size).toBe(2);
}

test("a write below a root never lands outside, however often a directory is swapped for a link", async () => {
  await using _ = swapping("inner");
  const url = `/v1/files?${query(join(dir, "inner/evil"))}`;
  await untilBoth(() => keeper.request(url, { method: "PUT", body: "x" }));
});

test("a read below a root never shows what is outside", async () => {
  await using _ = swapping("inner");
  const url = `/v1/files?${query(join(dir, "inner/precious"))}`;
  for (let tries = 0; tries < 500; tries++) {
    const reply = await keeper.request(url);
    expect([403, 404]).toContain(reply.status);
    await reply.body?.cancel();
  }
});

test("a recursive delete never follows a link that is swapped in", async () => {
  await using _ = swapping("tree/sub");
  for (let tries = 0; tries < 40; tries++) {
    const draft = join(dir, `draft-${tries}`);
    mkdirSync(join(draft, "sub/deeper"), { recursive: true });
    for (let i = 0; i < 20; i++) writeFileSync(join(draft, "sub/deeper", `f${i}`), "");
    renameSync(draft, join(dir, "tree"));
    const url = `/v1/files?${query(join(dir, "tree"))}&recursive=true`;
    await (await keeper.request(url, { method: "DELETE" })).body?.cancel();
    if (existsSync(join(dir, "tree"))) renameSync(join(dir, "tree"), join(dir, `left-${tries}`));
  }
  expect(readFileSync(join(outside, "precious"), "utf8")).toBe("precious");
});

test("an archive never lands outside, also if its own directories are swapped while it is unpacked", async () => {
  await using _ = swapping(".holdfast-tmp-*/d");
  const file = (path: string, type: "file" | "directory") =>
    tarHeader({
      path: Buffer.from(path),
      type,
      sizeBytes: 0,
      mode: 0o755,
      mtime: 0,
      target: Buffer.alloc(0),
    });
  const names = Array.from({ length: 10 }, (_, i) => `d/evil-${i}`);
  const archive = Buffer.concat([
    file("d/", "directory"),
    ...names.map((name) => file(name, "file")),
    TAR_END,
  ]);
  const url = `/v1/files/tar?${query(dir)}`;
  const statuses = new Set<number>();
  for (let tries = 0; tries < 2000 && (tries < 60 || !statuses.has(400)); tries++) {
    const reply = await keeper.request(url, { method: "PUT", body: archive });
    statuses.add(reply.status);
    await reply.body?.cancel();
    rmSync(join(dir, "d"), { recursive: true, force: true }); // nobody swaps it here
    expect(readdirSync(outside)).toEqual(["precious"]);
  }
  expect(statuses.has(400)).toBe(true);
});
