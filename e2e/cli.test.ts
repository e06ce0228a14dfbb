import { afterAll, beforeAll, expect, test } from "bun:test";
import { Sandbox } from "holdfast";
import { holdfastBin, run, TestServer } from "./harness.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server?.dispose());

function holdfast(args: string[], env: Record<string, string> = {}) {
  const found = { HOLDFAST_URL: server.url, HOLDFAST_DATA_DIR: server.dataDir, ...env };
  return run([holdfastBin, ...args], { env: found });
}

test("run returns when its sandbox's deletion is on record, and the sandbox goes, with evidence", async () => {
  const ran = await holdfast(["run", "--network", "none", "-o", "json", "--", "echo", "hi"]);
  const { stdout, sandboxId } = JSON.parse(ran.stdout);
  expect([ran.exitCode, stdout]).toEqual([0, "hi\n"]);
  // Sent once more, the deletion is what is under way or done; it answers when there is the evidence.
  const left = (await Sandbox.list(server.at)).find(({ id }) => id === sandboxId);
  expect(left?.info.state ?? "deleting").toBe("deleting");
  await left?.delete();
  expect((await Sandbox.events(sandboxId, server.at)).map(({ type }) => type)).toContain("deleted");
  const waited = await holdfast(["run", "--network", "none", "--until-gone", "-o", "json", "--", "true"]);
  const gone = await Sandbox.get(JSON.parse(waited.stdout).sandboxId, server.at).catch((error) => error.code);
  expect(gone).toBe("gone");
});

test("another token counts at once: the old one opens nothing, and whoever is on this machine finds the new", async () => {
  const before = server.token;
  const rotated = await holdfast(["token", "rotate"]);
  expect(rotated).toMatchObject({ exitCode: 0, stdout: `${server.token}\n` });
  expect(server.token).not.toBe(before);
  const refused = await holdfast(["ls"], { HOLDFAST_TOKEN: before });
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("error: ") });
  expect(await holdfast(["ls", "-q"])).toMatchObject({ exitCode: 0, stdout: "" });
  await server.restart("SIGKILL");
  expect(await holdfast(["ls", "-q"])).toMatchObject({ exitCode: 0, stdout: "" });
});
