import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HoldMode, holdDataDir } from "./data-dir.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-hold-"));
afterAll(() => rmSync(dir, { recursive: true }));

const cases: [first: HoldMode, second: HoldMode, answer: "taken" | "held"][] = [
  ["alone", "alone", "taken"],
  ["alone", "shared", "taken"],
  ["shared", "alone", "taken"],
  ["shared", "shared", "held"],
];
test.each(cases)("with one that holds it %s, one that wants it %s finds it %s", (first, second, answer) => {
  const path = join(dir, `${first}-${second}`);
  const held = holdDataDir(path, { mode: first });
  const attempt = () => holdDataDir(path, { mode: second }).release();
  if (answer === "taken") expect(attempt).toThrow(`already running on ${path} (pid ${process.pid})`);
  else expect(attempt).not.toThrow();
  held.release();
  held.release();
  expect(attempt).not.toThrow();
});

test("a server that is killed lets go", async () => {
  const path = join(dir, "killed");
  const script = `const { holdDataDir } = await import(${JSON.stringify(join(import.meta.dir, "data-dir.ts"))});
    holdDataDir(${JSON.stringify(path)}, { mode: "alone" }); console.log("held"); setInterval(() => {}, 1000);`;
  const other = Bun.spawn([process.execPath, "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await other.stdout.getReader().read();
  expect(() => holdDataDir(path, { mode: "shared" })).toThrow(`pid ${other.pid}`);
  other.kill("SIGKILL");
  await other.exited;
  holdDataDir(path, { mode: "alone" }).release();
});
