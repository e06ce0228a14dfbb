import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "holdfast";
import { holdfastBin, keeperPid, run, TestServer } from "./harness.ts";

test("a second server on the same data dir is refused, and told who has it", async () => {
  const server = await TestServer.start();
  try {
    const { exitCode, stderr } = await serve(server.dataDir);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`already running on ${server.dataDir} (pid ${server.pid})`);
    expect(stderr).toContain("hint:");
  } finally {
    await server.dispose();
  }
});

test("a copied data dir is refused, and the original's instances are not touched", async () => {
  const server = await TestServer.start();
  const elsewhere = mkdtempSync(join(tmpdir(), "holdfast-copy-"));
  const copy = join(elsewhere, "copy");
  try {
    const sandbox = await Sandbox.create({}, server.at);
    await sandbox.exec("echo work > /workspace/file");
    const keeper = await keeperPid(sandbox);
    await run(["cp", "-a", server.dataDir, copy]);

    for (const args of [[], ["--data-dir-moved"]]) {
      const { exitCode, stderr } = await serve(copy, args);
      expect(exitCode).toBe(1);
      expect(stderr).toContain(`is a copy of ${server.dataDir}, which is still there`);
    }
    // Neither does it help that the original's server is away for a moment.
    await server.signal("SIGKILL");
    expect((await serve(copy, ["--data-dir-moved"])).exitCode).toBe(1);
    await server.boot();
    expect(await keeperPid(sandbox)).toBe(keeper);
    expect(await sandbox.exec("cat /workspace/file")).toMatchObject({ stdout: "work\n", generation: 1 });
  } finally {
    await server.dispose();
    rmSync(elsewhere, { recursive: true, force: true });
  }
});

test("a data dir that was moved goes on: renamed as it is, to another disk when somebody says so", async () => {
  const first = await TestServer.start();
  const elsewhere = mkdtempSync(join(tmpdir(), "holdfast-moved-"));
  // The sandboxes' users must be able to reach their disks.
  chmodSync(elsewhere, 0o711);
  const [renamed, moved] = [join(elsewhere, "renamed"), join(elsewhere, "moved")];
  const sandbox = await Sandbox.create({ name: "traveller" }, first.at);
  await sandbox.exec("echo work > /workspace/file");
  await sandbox.stop();
  await first.signal("SIGTERM");

  renameSync(first.dataDir, renamed);
  const second = await TestServer.start({ dataDir: renamed });
  expect((await Sandbox.get("traveller", second.at)).state).toBe("stopped");
  await second.signal("SIGTERM");

  // As `mv` does between two disks.
  await run(["cp", "-a", renamed, moved]);
  rmSync(renamed, { recursive: true });
  const { exitCode, stderr } = await serve(moved);
  expect(exitCode).toBe(1);
  expect(stderr).toContain("--data-dir-moved");
  const third = await TestServer.start({ dataDir: moved, args: ["--data-dir-moved"] });
  try {
    const back = await (await Sandbox.get("traveller", third.at)).exec("cat /workspace/file");
    expect(back).toMatchObject({ stdout: "work\n", generation: 2 });
    // Said once: from now on it is at home here.
    await third.signal("SIGTERM");
    const fourth = await TestServer.start({ dataDir: moved });
    await fourth.signal("SIGTERM");
  } finally {
    await third.dispose();
    rmSync(elsewhere, { recursive: true, force: true });
  }
});

/** A server that is expected to refuse. */
function serve(dataDir: string, args: string[] = []): ReturnType<typeof run> {
  return run([holdfastBin, "serve", "--port", "0", "--data-dir", dataDir, ...args]);
}
