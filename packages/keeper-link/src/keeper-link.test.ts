import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { fakeKeeper, refusal } from "./fake-keeper.ts";
import type { KeeperLink } from "./keeper-link.ts";

describe("a keeper from before policies", () => {
  const info = {
    protocolVersion: "1.0",
    sandboxId: "sbx-1",
    instanceId: "i-1",
    generation: 2,
    admitted: true,
    fence: 3,
    shell: "bash",
    startedAt: "2026-01-01T00:00:00.000Z",
    commandsRunning: 0,
    processesRunning: 0,
  };
  const OldAdmit = z.strictObject({ instanceId: z.string(), generation: z.number(), fence: z.number() });

  function oldKeeper() {
    const admitted: unknown[] = [];
    const keeper = fakeKeeper({
      "/v1/keeper": () => Response.json(info),
      "/v1/shutdown": () => Response.json(info, { status: 202 }),
      "/v1/admit": async (request) => {
        const parsed = OldAdmit.safeParse(await request.json());
        if (!parsed.success) return refusal(400, { code: "invalid_argument", message: "unrecognized keys" });
        admitted.push(parsed.data);
        return Response.json(info);
      },
    });
    return Object.assign(keeper, { admitted });
  }

  test("is admitted, looked at, watched and stopped", async () => {
    await using keeper = oldKeeper();
    const { link } = keeper;
    await link.admit({ instanceId: "i-1", generation: 2, fence: 3, lifetimeSeconds: 60 });
    expect(keeper.admitted).toEqual([{ instanceId: "i-1", generation: 2, fence: 3 }]);
    expect(await link.info()).toEqual(info as Awaited<ReturnType<KeeperLink["info"]>>);
    const ended = Promise.withResolvers<void>();
    await link.watch({ onEnd: ended.resolve });
    expect((await link.send({ method: "POST", path: "/shutdown" })).status).toBe(202);
    await keeper.stop();
    await ended.promise;
  });

  test.each<[string, (link: KeeperLink) => Promise<unknown>]>([
    ["quiesce", (link) => link.quiesce({ lifetimeMs: 1 })],
    ["resume", (link) => link.resume()],
    ["touch", (link) => link.touch()],
    ["activity", (link) => link.activity()],
    ["claimFence", (link) => link.claimFence({ fence: 1, required: true })],
  ])("does not know %s, and that is said plainly", async (_, ask) => {
    await using keeper = oldKeeper();
    expect(await ask(keeper.link).catch((thrown) => thrown)).toMatchObject({
      code: "unsupported",
      started: "no",
      message: expect.stringContaining("older than this server"),
      hint: expect.stringContaining("stop the sandbox"),
    });
  });
});

test("a policy that makes no sense is not sent, and another refusal is not taken for age", async () => {
  let asked = 0;
  await using keeper = fakeKeeper({
    "/v1/admit": () => {
      asked++;
      return refusal(409, { code: "wrong_state", message: "this is instance i-2" });
    },
  });
  const admit = (lifetimeSeconds: number) =>
    keeper.link
      .admit({ instanceId: "i", generation: 1, fence: 3, lifetimeSeconds })
      .catch((thrown) => thrown);
  expect(String(await admit(-1))).toBe("Error: lifetimeSeconds: Too small: expected number to be >0");
  expect(asked).toBe(0);
  expect(await admit(5)).toMatchObject({ code: "wrong_state" });
  expect(asked).toBe(1);
});

test("a call carries the claim that it is made under, and none if there is none", async () => {
  const seen: (string | null)[] = [];
  await using keeper = fakeKeeper({
    "/v1/touch": ({ headers }) => {
      seen.push(headers.get("Holdfast-Claim-Fence"));
      return Response.json({ idleForMs: 0, heldAwakeBy: [] });
    },
  });
  await keeper.link.touch();
  await keeper.link.touch({ claimFence: 7 });
  await keeper.link.json({ method: "POST", path: "/touch", claimFence: 8 }, z.unknown());
  expect(seen).toEqual([null, "7", "8"]);
});
