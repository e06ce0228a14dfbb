import { expect, test } from "bun:test";
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** Any id without rights will do; it need not be in the host's list of users. */
const PLAIN_UID = 64_123;

const asRoot = process.getuid?.() === 0;
const own = basename(import.meta.path);
const suites = [...new Bun.Glob("*.test.ts").scanSync(import.meta.dir)].filter((file) => file !== own);

test.if(asRoot)(
  "a plain user passes the same tests",
  async () => {
    const home = mkdtempSync(join(tmpdir(), "holdfast-plain-"));
    chmodSync(home, 0o755);
    chownSync(home, PLAIN_UID, PLAIN_UID);
    try {
      const id = String(PLAIN_UID);
      const child = Bun.spawn(
        [
          ...["setpriv", "--reuid", id, "--regid", id, "--clear-groups", process.execPath, "test"],
          ...["--timeout", "120000"],
          ...suites.map((file) => join(import.meta.dir, file)),
        ],
        { env: { PATH: "/usr/bin:/bin", HOME: home, TMPDIR: home }, stdio: ["ignore", "ignore", "pipe"] },
      );
      const report = await new Response(child.stderr).text();
      expect({
        exitCode: await child.exited,
        failed: report.split("\n").filter((line) => line.includes("(fail)")),
      }).toEqual({
        exitCode: 0,
        failed: [],
      });
      expect(report).toMatch(/\d\d pass/);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  },
  300_000,
);
