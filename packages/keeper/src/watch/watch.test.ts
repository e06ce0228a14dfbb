import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";
import { TestWatcher } from "./test-watcher.ts";

setDefaultTimeout(120_000);

let keeper: TestKeeper;
beforeAll(async () => {
  keeper = await startTestKeeper();
});
afterAll(() => keeper[Symbol.asyncDispose]());

const newDir = () => mkdtempSync(join(keeper.dir, "watched-"));

/** What is really there, as a watcher writes it. */
function pathsIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return entry.isDirectory() ? `${path}/` : path;
  });
}

test("every kind of change, in order; a move is one event; links are not followed; names of any bytes", async () => {
  const dir = newDir();
  const outside = newDir();
  writeFileSync(join(dir, "old"), "");
  symlinkSync(outside, join(dir, "link"));
  await using watcher = await TestWatcher.open(keeper, dir);
  const steps: [() => void, string][] = [
    [() => writeFileSync(join(dir, "a"), "1"), "created a"],
    [() => appendFileSync(join(dir, "a"), "2"), "modified a"],
    [() => renameSync(join(dir, "a"), join(dir, "b")), "moved b"],
    [() => mkdirSync(join(dir, "d")), "created d"],
    [() => renameSync(join(dir, "b"), join(dir, "d/b")), "moved d/b"],
    [() => renameSync(join(dir, "d"), join(dir, "e")), "moved e"],
    [() => writeFileSync(join(dir, "e/b"), "3"), "modified e/b"],
    [() => renameSync(join(dir, "e/b"), join(outside, "b")), "deleted e/b"],
    [() => rmdirSync(join(dir, "e")), "deleted e"],
    [() => writeFileSync(join(outside, "unseen"), ""), ""],
    [() => unlinkSync(join(dir, "old")), "deleted old"],
  ];
  for (const [step, event] of steps) {
    step();
    const [type, path = ""] = event.split(" ");
    if (event !== "")
      await watcher.until(
        (heard) => heard.type === type && "path" in heard && heard.path === join(dir, path),
      );
  }
  const expected = steps.map(([, event]) => event.replace(" ", ` ${dir}/`)).filter((event) => event !== "");
  expect(watcher.told).toEqual(expected);
  expect(watcher.heard.find(({ type }) => type === "moved")).toMatchObject({
    from: join(dir, "a"),
    path: join(dir, "b"),
    directory: false,
  });
  // What is written through the API is one event, without the name that it has before it is whole.
  await keeper.request(`/v1/files?path=${dir}/api`, { method: "PUT", body: "1" });
  await keeper.request(`/v1/files?path=${dir}/api2`, { method: "PUT", body: "2" });
  await watcher.until((heard) => "path" in heard && heard.path === join(dir, "api2"));
  expect(watcher.told.slice(expected.length)).toEqual([`created ${dir}/api`, `created ${dir}/api2`]);
  const name = Buffer.concat([Buffer.from(`${dir}/`), Buffer.from([0xff, 0x0a, 0x80])]);
  writeFileSync(name, "");
  const odd = await watcher.until((heard) => "pathBase64" in heard);
  expect(odd).toMatchObject({ type: "created", pathBase64: name.toString("base64") });
});

test("a directory that is full before it can be watched; a shallow watch; one file that is replaced", async () => {
  const dir = newDir();
  const deep = join(dir, "x/y/z");
  await using watcher = await TestWatcher.open(keeper, dir);
  await using shallow = await TestWatcher.open(keeper, dir, { query: "&recursive=false" });
  const made = Bun.spawnSync([
    "sh",
    "-c",
    `mkdir -p ${deep} && for i in 1 2 3 4 5; do echo > ${deep}/$i; done`,
  ]);
  expect(made.exitCode).toBe(0);
  await watcher.untilPaths(pathsIn(dir));
  await using single = await TestWatcher.open(keeper, join(deep, "3"));
  writeFileSync(join(deep, "4"), "other");
  writeFileSync(join(deep, "3.tmp"), "new");
  renameSync(join(deep, "3.tmp"), join(deep, "3"));
  writeFileSync(join(dir, "last"), "");
  await single.until(({ type }) => type !== "ready");
  await shallow.until((heard) => "path" in heard && heard.path === join(dir, "last"));
  expect(single.told.every((told) => told.endsWith(` ${join(deep, "3")}`))).toBe(true);
  expect(shallow.told.map((told) => told.split(" ")[1])).not.toContain(join(dir, "x/y"));
  const shared = await TestWatcher.open(keeper, dir);
  rmSync(dir, { recursive: true });
  await Promise.all([watcher.ended, shared.ended]);
  expect(watcher.heard.at(-1)).toMatchObject({ type: "resync", reason: "root_gone" });
  expect((await keeper.call(`/v1/file-watch?path=${dir}`)).body.error.code).toBe("not_found");
});

test("a reader that was away goes on at its cursor; a cursor of another life says resync", async () => {
  const dir = newDir();
  const first = await TestWatcher.open(keeper, dir);
  writeFileSync(join(dir, "before"), "");
  await first.untilPaths(pathsIn(dir));
  await first[Symbol.asyncDispose]();
  for (let i = 0; i < 500; i++) writeFileSync(join(dir, `away-${i}`), "");
  await using second = await TestWatcher.open(keeper, dir, { since: first.lastCursor, paths: first.paths });
  await second.untilPaths(pathsIn(dir));
  expect(second.told).not.toContain(`created ${join(dir, "before")}`);
  await using lost = await TestWatcher.open(keeper, dir, { since: "deadbeef:7" });
  expect(await lost.until(({ type }) => type === "resync")).toMatchObject({ reason: "cursor_unknown" });
  // Looking is not use: nothing holds the sandbox awake.
  expect((await keeper.call("/v1/activity")).body.heldAwakeBy).toEqual([]);
});

test("10,000 changes in a burst, and a random walk over a tree: what is heard makes the real files", async () => {
  const dir = newDir();
  const outside = newDir();
  // Where the keeper gets no turn for long, the kernel's queue is full, and it looks again like any client.
  await using watcher = await TestWatcher.open(keeper, dir, { look: () => pathsIn(dir) });
  for (let i = 0; i < 5_000; i++) {
    const path = join(dir, `${i % 50}`);
    if (i < 50) mkdirSync(path);
    writeFileSync(join(path, `${i}`), "x");
    if (i % 3 === 0) unlinkSync(join(path, `${i}`));
    else writeFileSync(join(path, `${i}`), "y");
    if (i % 500 === 0) await Bun.sleep(1);
  }
  const walk = new RandomWalk({ dir, outside, seed: 7 });
  for (let i = 0; i < 2_000; i++) {
    walk.step();
    if (i % 100 === 0) await Bun.sleep(1);
  }
  await watcher.untilPaths(pathsIn(dir));
  expect(watcher.paths.size).toBeGreaterThan(1_000);
});

test("more than the kernel keeps: resync is said, and nothing is missed after it", async () => {
  const dir = newDir();
  await using watcher = await TestWatcher.open(keeper, dir);
  const most = Number(await Bun.file("/proc/sys/fs/inotify/max_queued_events").text());
  process.kill(keeper.child.pid, "SIGSTOP");
  try {
    for (let i = 0; i < most; i++) writeFileSync(join(dir, `${i % 7}`), ""); // three events each
    mkdirSync(join(dir, "made-unseen"));
  } finally {
    process.kill(keeper.child.pid, "SIGCONT");
  }
  expect(await watcher.until(({ type }) => type === "resync")).toMatchObject({ reason: "overflow" });
  const late = join(dir, "made-unseen/late");
  writeFileSync(late, "");
  await watcher.until((heard) => heard.type === "created" && heard.path === late);
});

/** Makes, changes, moves and removes files and directories, in and out of a tree, by chance that can be had again. */
class RandomWalk {
  readonly #dir: string;
  readonly #outside: string;
  #seed: number;
  #count = 0;

  constructor({ dir, outside, seed }: { dir: string; outside: string; seed: number }) {
    this.#dir = dir;
    this.#outside = outside;
    this.#seed = seed;
  }

  step(): void {
    const name = `walk-${this.#count++}`;
    const from = this.#anything();
    const to = join(this.#directory(), name);
    const away = join(this.#outside, name);
    switch (this.#random(8)) {
      case 0:
      case 1:
        mkdirSync(to);
        break;
      case 2:
        rmSync(from, { recursive: true });
        break;
      case 3:
        if (!to.startsWith(`${from}/`)) renameSync(from, to);
        break;
      case 4:
        renameSync(from, away);
        break;
      case 5:
        mkdirSync(join(away, "sub"), { recursive: true });
        writeFileSync(join(away, "sub/file"), "");
        renameSync(away, to);
        break;
      default:
        writeFileSync(to, "");
    }
  }

  /** A way down from the top that ends at any place. */
  #directory(): string {
    let dir = this.#dir;
    for (;;) {
      const below = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
      if (below.length === 0 || this.#random(3) === 0) return dir;
      dir = join(dir, below[this.#random(below.length)]?.name ?? "");
    }
  }

  #anything(): string {
    const dir = this.#directory();
    const names = readdirSync(dir);
    if (names.length > 0) return join(dir, names[this.#random(names.length)] ?? "");
    writeFileSync(join(dir, "only"), "");
    return join(dir, "only");
  }

  #random(below: number): number {
    this.#seed = (this.#seed * 1103515245 + 12345) % 2 ** 31;
    return Math.floor((this.#seed / 2 ** 31) * below);
  }
}
