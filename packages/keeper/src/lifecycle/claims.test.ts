import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLAIM_FENCE_HEADER } from "@holdfast/protocol";
import { TestViewer } from "../terminal/test-viewer.ts";
import { startTestKeeper, type TestKeeper } from "../test-keeper.ts";

// A second each on a machine that does nothing else.
setDefaultTimeout(120_000);

/** Runs a command under a claim, or under none; gives the code of what it was refused with. */
async function run(keeper: TestKeeper, fence?: number | string): Promise<string> {
  const headers: Record<string, string> = fence === undefined ? {} : { [CLAIM_FENCE_HEADER]: String(fence) };
  const body = JSON.stringify({ command: ["true"] });
  const reply = await keeper.request("/v1/exec", { method: "POST", body, headers });
  const answer = await reply.json();
  if (answer.error === undefined) return "ran";
  expect(answer.error).toMatchObject({ started: "no" });
  return answer.error.code;
}

const claim = async (keeper: TestKeeper, fence: number, required: boolean) =>
  (await keeper.call("/v1/claim-fence", { fence, required })).status;

test("a stale holder's work is refused, a look is not, and a release lets everybody in", async () => {
  await using keeper = await startTestKeeper();
  expect([await run(keeper), await run(keeper, 0)]).toEqual(["ran", "ran"]);
  expect(await claim(keeper, 5, true)).toBe(204);
  expect([await run(keeper, 5), await run(keeper, 4), await run(keeper)]).toEqual([
    "ran",
    "claim_lost",
    "claim_lost",
  ]);
  expect(await run(keeper, "x")).toBe("invalid_argument");
  const look = await keeper.request("/v1/processes", { headers: { [CLAIM_FENCE_HEADER]: "1" } });
  expect(look.status).toBe(200);
  // One that the keeper hears of first by its work.
  expect([await run(keeper, 6), await run(keeper, 5)]).toEqual(["ran", "claim_lost"]);
  expect(await claim(keeper, 5, false)).toBe(409);
  expect(await claim(keeper, 7, false)).toBe(204);
  expect([await run(keeper), await run(keeper, 7), await run(keeper, 6)]).toEqual([
    "ran",
    "ran",
    "claim_lost",
  ]);
});

test("what ends something is fenced, too; a touch as well", async () => {
  await using keeper = await startTestKeeper();
  await keeper.call("/v1/processes", { command: ["sleep", "100"], processId: "p" });
  await claim(keeper, 2, true);
  const headers = { [CLAIM_FENCE_HEADER]: "1" };
  for (const path of ["/v1/processes/p/kill", "/v1/touch"]) {
    const reply = await keeper.request(path, { method: "POST", headers });
    expect([path, reply.status, (await reply.json()).error.code]).toEqual([path, 409, "claim_lost"]);
  }
  expect((await keeper.call("/v1/processes/p")).body.status).toEqual({ state: "running" });
});

test("it holds for the next keeper, also of one that crashed", async () => {
  const first = await startTestKeeper();
  await claim(first, 9, true);
  await first.crash();
  await using next = await startTestKeeper({ dir: first.dir });
  expect((await next.call("/v1/keeper")).body).toMatchObject({ claimFence: 9 });
  expect([await run(next, 8), await run(next), await run(next, 9)]).toEqual([
    "claim_lost",
    "claim_lost",
    "ran",
  ]);
});

test.each<[string, (path: string) => void]>([
  ["nothing", () => {}],
  ["garbage", (path) => writeFileSync(path, "{")],
  ["a number that no client comes near", (path) => writeFileSync(path, '{"fence":1e15,"required":true}')],
  ["a link", (path) => symlinkSync("/etc/passwd", path)],
  ["a directory", (path) => mkdirSync(path)],
  ["a pipe that nobody writes to", (path) => void Bun.spawnSync(["mkfifo", path])],
])("%s where the number was: it starts, and can be told anew", async (_what, put) => {
  const first = await startTestKeeper();
  await claim(first, 9, true);
  await first.crash();
  const file = join(first.boot.stateDir, "claim-fence.json");
  rmSync(file);
  put(file);
  await using next = await startTestKeeper({ dir: first.dir });
  expect(await run(next)).toBe("ran");
  // Also where it cannot be written: the work inside must not be able to shut out whoever claims the sandbox.
  expect(await claim(next, 10, true)).toBe(204);
  expect([await run(next, 9), await run(next), await run(next, 10)]).toEqual([
    "claim_lost",
    "claim_lost",
    "ran",
  ]);
});

test("who is attached to a terminal cannot type any more once another has claimed the sandbox", async () => {
  await using keeper = await startTestKeeper();
  await claim(keeper, 1, true);
  const create = { method: "POST", body: JSON.stringify({ id: "t", command: ["cat"] }) };
  expect(
    (await keeper.request("/v1/terminals", { ...create, headers: { [CLAIM_FENCE_HEADER]: "1" } })).status,
  ).toBe(201);
  const viewer = await TestViewer.connect(`ws+unix://${keeper.boot.socketPath}:/v1/terminals/t/connect`, {
    Authorization: `Bearer ${keeper.boot.secret}`,
    "Holdfast-Fence": "1",
    [CLAIM_FENCE_HEADER]: "1",
  });
  viewer.type("mine\n");
  await viewer.sees(/mine/);
  await claim(keeper, 2, true);
  viewer.type("stale\n");
  await viewer.until(({ closed }) => closed !== undefined);
  expect([viewer.frame("error")?.error.code, viewer.closed?.reason]).toEqual(["claim_lost", "claim_lost"]);
  expect(viewer.text).not.toContain("stale");
});
