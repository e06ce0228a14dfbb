import { afterAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkHome, homeOf } from "./data-dir-home.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-home-"));
afterAll(() => rmSync(dir, { recursive: true }));

let serial = 0;
function newDataDir(): string {
  const path = join(dir, `data-${serial++}`);
  mkdirSync(path);
  return path;
}

function check(recorded: string, present: string, moved: "confirmed" | "not confirmed"): string {
  try {
    return checkHome({ recorded, present, moved: moved === "confirmed" });
  } catch (error) {
    return (error as Error).message;
  }
}

test("a data dir stays the same where it is, and under another name", () => {
  const path = newDataDir();
  const recorded = homeOf(path);
  expect(check(recorded, homeOf(path), "not confirmed")).toBe("same");
  renameSync(path, `${path}-renamed`);
  expect(check(recorded, homeOf(`${path}-renamed`), "not confirmed")).toBe("same");
});

test("a copy whose original is there is never accepted; once that is gone, it may be confirmed", () => {
  const path = newDataDir();
  const recorded = homeOf(path);
  cpSync(path, `${path}-copy`, { recursive: true });
  const copy = homeOf(`${path}-copy`);
  expect(check(recorded, copy, "not confirmed")).toMatch(/is a copy of .*, which is still there/);
  expect(check(recorded, copy, "confirmed")).toMatch(/is a copy of .*, which is still there/);
  rmSync(path, { recursive: true });
  expect(check(recorded, copy, "not confirmed")).toMatch(/it was moved, or it is a copy/);
  expect(check(recorded, copy, "confirmed")).toBe("moved");
});

const here = JSON.parse(homeOf(dir));
test.each([
  ["another machine", { machineId: "other" }, "on another machine"],
  ["another disk", { dev: "1", path: "/no/such/path" }, "on this machine"],
  ["another directory at the same path", { ino: "1" }, "on this machine"],
])("%s must be confirmed", (_, difference, where) => {
  const recorded = JSON.stringify({ ...here, ...difference });
  expect(check(recorded, JSON.stringify(here), "not confirmed")).toContain(where);
  expect(check(recorded, JSON.stringify(here), "confirmed")).toBe("moved");
});

test("a disk that has another number after a restart of the machine is the same", () => {
  expect(check(JSON.stringify({ ...here, dev: "1" }), JSON.stringify(here), "not confirmed")).toBe("same");
});
