import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalProvider } from "../index.ts";

test("an image, a user and a runtime are refused before anything is made", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdfast-local-"));
  const dataDir = join(dir, "data");
  const ref = { installationId: "i", sandboxId: "s", instanceId: "x", generation: 1 };
  const plan = { hostname: "box", secret: "x".repeat(32), lifetimeSeconds: 60, fence: 1 };
  const provider = createLocalProvider({ dataDir, keeperBundle: dir });
  for (const spec of [{ image: "debian:bookworm" }, { user: "root" }, { runtime: "runsc" }]) {
    const launch = provider.launch(ref, { ...plan, spec }, AbortSignal.timeout(5_000));
    await expect(launch).rejects.toMatchObject({ code: "unsupported", started: "no" });
  }
  expect(existsSync(dataDir)).toBe(false);
  rmSync(dir, { recursive: true });
});
