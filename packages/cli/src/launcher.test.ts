import { afterAll, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { launcher } from "./test-cli.ts";

const clone = mkdtempSync(join(tmpdir(), "holdfast-launcher-"));
afterAll(() => rmSync(clone, { recursive: true }));

/** A file of the clone that was written so many seconds ago. */
function put(path: string, text: string, secondsAgo: number): void {
  const file = join(clone, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o755 });
  const at = new Date(Date.now() - secondsAgo * 1000);
  for (const touched of [file, dirname(file)]) utimesSync(touched, at, at);
}

function started(...args: string[]): string {
  return Bun.spawnSync([join(clone, "packages/cli/bin/holdfast"), ...args]).stdout.toString();
}

test("the program that the set-up built is used, unless a source is newer than it", () => {
  put("node_modules/.bin/bun", '#!/bin/sh\nshift 2; echo "${1##*/packages/} ${2-}"\n', 100);
  put("package-lock.json", "{}", 100);
  put("packages/sdk/src/index.ts", "", 100);
  put("packages/cli/src/main.ts", "", 100);
  mkdirSync(join(clone, "packages/cli/bin"));
  copyFileSync(launcher, join(clone, "packages/cli/bin/holdfast"));

  expect(started("ls")).toBe("cli/src/main.ts ls\n");
  put("build/cli/holdfast", '#!/bin/sh\necho "built $1"\n', 50);
  expect(started("ls")).toBe("built ls\n");
  expect(started("serve")).toBe("server/src/main.ts \n");
  expect(started("doctor")).toBe("server/src/doctor.ts \n");
  put("packages/sdk/src/index.ts", "", 0);
  expect(started("ls")).toBe("cli/src/main.ts ls\n");
  put("packages/sdk/src/index.ts", "", 100);
  put("package-lock.json", "{}", 0);
  expect(started("ls")).toBe("cli/src/main.ts ls\n");
  put("package-lock.json", "{}", 100);
  expect(started("ls")).toBe("built ls\n");
  put("packages/cli/src/skill/holdfast/SKILL.md", "", 0);
  expect(started("ls")).toBe("cli/src/main.ts ls\n");
});
