import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstFileIn, tarOf } from "./tar.ts";

test("tar itself reads what we write", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-tar-"));
  const file = join(dir, "a.tar");
  const entries = [
    { path: "home/user", uid: 1000, mode: 0o700 },
    { path: "etc/passwd", uid: 0, mode: 0o644, content: "root\n" },
    // An id from a directory service, too large for the format's digits.
    { path: "large", uid: 1_879_048_193, mode: 0o755 },
  ];
  await Bun.write(file, tarOf(entries, { now: Date.UTC(2026, 0, 2) }));
  const options = ["--numeric-owner", "--utc", "-tvf", file];
  const { stdout, stderr } = Bun.spawnSync(["tar", ...options], { env: { ...process.env, LC_ALL: "C" } });
  const listed = stdout
    .toString()
    .trim()
    .split("\n")
    .map((line) => line.replaceAll(/ +/g, " "));
  expect([listed, stderr.toString()]).toEqual([
    [
      "drwx------ 1000/1000 0 2026-01-02 00:00 home/user",
      "-rw-r--r-- 0/0 5 2026-01-02 00:00 etc/passwd",
      "drwxr-xr-x 1879048193/1879048193 0 2026-01-02 00:00 large",
    ],
    "",
  ]);
  rmSync(dir, { recursive: true });
});

test("the first file of an archive", () => {
  const tar = tarOf([{ path: "a", uid: 0, mode: 0o644, content: "é\n" }], { now: 0 });
  expect(firstFileIn(tar)).toBe("é\n");
});
