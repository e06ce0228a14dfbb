import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newApp } from "./app.ts";
import { listen } from "./listen.ts";

test("a port that another server has is refused, never shared", async () => {
  const dirs = [0, 1].map(() => mkdtempSync(join(tmpdir(), "holdfast-listen-")));
  const [dataDir = "", other = ""] = dirs;
  const first = listen(newApp(), { host: "127.0.0.1", port: 0, dataDir, isShared: false });
  try {
    const port = Number(new URL(first.url).port);
    expect(() => listen(newApp(), { host: "127.0.0.1", port, dataDir: other, isShared: false })).toThrow(
      "cannot listen on",
    );
  } finally {
    await first.close({ graceMs: 0 });
    for (const dir of dirs) rmSync(dir, { recursive: true });
  }
});
