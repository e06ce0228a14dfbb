import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pending } from "./pending.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "holdfast-pending-"));
});
afterEach(() => rmSync(home, { recursive: true }));

/** Notes a name in a directory, and makes it. */
function begin(pending: Pending, dir: string) {
  const path = join(home, dir);
  mkdirSync(path, { recursive: true });
  const fd = openSync(path, "r");
  const { name, done } = pending.add(fd);
  closeSync(fd);
  const file = join(path, name.toString());
  writeFileSync(file, "half");
  return { file, done };
}

const notes = () => readdirSync(join(home, "files/pending"));

test("in a series they share a note; the next keeper goes by what it said last", async () => {
  const killed = new Pending(home);
  const series = killed.series();
  const first = begin(killed, "a/directory/with/a/long/name");
  first.done();
  first.done();
  const second = begin(killed, "b");
  expect(notes()).toHaveLength(1);
  const third = begin(killed, "c");
  expect(notes()).toHaveLength(2);
  await new Pending(home).recover();
  expect([first.file, second.file, third.file].map(existsSync)).toEqual([true, false, false]);
  expect(notes()).toEqual([]);

  begin(killed, "d").done();
  expect(notes()).toHaveLength(1);
  series[Symbol.dispose]();
  expect(notes()).toEqual([]);
  begin(killed, "e").done();
  expect(notes()).toEqual([]);
});

test("what the work puts in the place of a spare note is not written to, and the next note is whole", async () => {
  const inTheWay: ((note: string) => void)[] = [
    (note) => symlinkSync(join(home, "precious"), note),
    (note) => Bun.spawnSync(["mkfifo", note]),
    (note) => mkdirSync(note),
    () => rmSync(join(home, "files"), { recursive: true }),
  ];
  writeFileSync(join(home, "precious"), "precious");
  for (const put of inTheWay) {
    const killed = new Pending(home);
    killed.series();
    begin(killed, "a").done();
    const [spare = ""] = notes();
    rmSync(join(home, "files/pending", spare));
    put(join(home, "files/pending", spare));
    const { file } = begin(killed, "b");
    await new Pending(home).recover();
    expect([existsSync(file), notes()]).toEqual([false, []]);
  }
  expect(readFileSync(join(home, "precious"), "utf8")).toBe("precious");
});
