import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withFileLock } from "./file-lock.ts";

const dir = mkdtempSync(join(tmpdir(), "holdfast-lock-"));
afterAll(() => rmSync(dir, { recursive: true }));

const file = join(dir, "locks");
const soon = () => AbortSignal.timeout(5_000);

/** A process that holds the lock until it is killed. */
async function heldByAnother(key: string): Promise<Bun.Subprocess> {
  const script = `const { withFileLock } = await import(${JSON.stringify(join(import.meta.dir, "file-lock.ts"))});
    const options = { file: ${JSON.stringify(file)}, key: "${key}", mode: "alone", signal: AbortSignal.timeout(5000) };
    await withFileLock(options, async () => { console.log("held"); await Bun.sleep(60_000); });`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await child.stdout.getReader().read();
  return child;
}

test("another process keeps us out of its key, not of others, and its death lets us in", async () => {
  const other = await heldByAnother("a");
  const aborted = withFileLock(
    { file, key: "a", mode: "alone", signal: AbortSignal.timeout(30) },
    async () => {},
  );
  await expect(aborted).rejects.toMatchObject({ code: "unavailable", started: "no" });
  expect(await withFileLock({ file, key: "b", mode: "alone", signal: soon() }, async () => "in")).toBe("in");
  const waiting = withFileLock({ file, key: "a", mode: "alone", signal: soon() }, async () => "in");
  other.kill("SIGKILL");
  expect(await waiting).toBe("in");
  await other.exited;
});

test("several share, and one that wants it alone waits for all of them", async () => {
  const order: string[] = [];
  const both = Promise.withResolvers<void>();
  const share = (name: string) =>
    withFileLock({ file, key: "c", mode: "shared", signal: soon() }, async () => {
      order.push(name);
      if (order.length === 2) both.resolve();
      await both.promise;
    });
  const shared = Promise.all([share("first"), share("second")]);
  const alone = withFileLock({ file, key: "c", mode: "alone", signal: soon() }, async () =>
    order.push("alone"),
  );
  await Promise.all([shared, alone]);
  expect(order).toEqual(["first", "second", "alone"]);
});

test("work that fails lets go", async () => {
  const failing = withFileLock({ file, key: "d", mode: "alone", signal: soon() }, () =>
    Promise.reject(new Error("no")),
  );
  await expect(failing).rejects.toThrow("no");
  expect(await withFileLock({ file, key: "d", mode: "alone", signal: soon() }, async () => "in")).toBe("in");
});
