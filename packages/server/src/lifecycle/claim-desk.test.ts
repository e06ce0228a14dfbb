import { afterEach, beforeEach, expect, test } from "bun:test";
import { FakeProvider } from "@holdfast/testkit";
import { hashOf } from "./claims.ts";
import { refOf } from "./effects.ts";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
beforeEach(async () => {
  world = new TestWorld();
  await world.server.start();
});
afterEach(() => world.close());

const asked = (holder: string, takeover: "takeover" | "if-free" = "if-free") =>
  world.server.claims.claim("one", { holder, ttlSeconds: 60, takeover: takeover === "takeover" });
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "ok",
    ({ code }) => code,
  );
const use = (claimToken?: string) =>
  codeOf(world.server.sandboxes.use("one", claimToken === undefined ? {} : { claimToken }));

test("a claim lets its holder through and nobody else, and its token is not kept", async () => {
  const { lease } = await world.running("one");
  const { claim, token } = await asked("ann");
  expect(claim).toEqual({
    claimId: claim.claimId,
    holder: "ann",
    fence: 1,
    tokenHash: hashOf(token),
    expiresAt: world.clock.wall() + 60_000,
  });
  expect(JSON.stringify(await world.store.find("one"))).not.toContain(`"${token}"`);
  expect(world.provider.keeperOf(refOf(lease)).claim).toEqual({ fence: 1, required: true });
  expect([await use(token), await use(), await use("stolen")]).toEqual(["ok", "claim_held", "claim_lost"]);
  expect(await codeOf(asked("bob"))).toBe("claim_held");
  // Looking is for everybody; changing is not.
  const changes = [
    world.server.sandboxes.stop("one"),
    world.server.sandboxes.delete("one", { mode: "force", waitMs: 0 }),
    world.server.sandboxes.update("one", { lifetimeSeconds: 60 }),
    world.server.turns.begin("one", {}),
  ];
  expect(await Promise.all(changes.map(codeOf))).toEqual(Array(4).fill("claim_held"));
  expect(await codeOf(world.server.sandboxes.look("one"))).toBe("ok");
});

test("a takeover is explicit and recorded, its number is higher, and the last holder is told", async () => {
  const { sandboxId, lease } = await world.running("one");
  const ann = await asked("ann");
  const bob = await asked("bob", "takeover");
  expect([bob.claim.fence, await use(ann.token), await use(bob.token)]).toEqual([2, "claim_lost", "ok"]);
  expect(world.provider.keeperOf(refOf(lease)).claim).toEqual({ fence: 2, required: true });
  const entries = await world.store.timeline(sandboxId, { since: 0, limit: 100 });
  expect(entries.filter(({ type }) => type.startsWith("claim"))).toMatchObject([
    { type: "claimed", actor: "ann", detail: { holder: "ann", fence: 1 } },
    { type: "claim_taken_over", actor: "bob", detail: { holder: "bob", fence: 2, from: "ann" } },
  ]);
  const late = { token: ann.token, ttlSeconds: 60 };
  expect([
    await codeOf(world.server.claims.renew("one", ann.claim.claimId, late)),
    await codeOf(world.server.claims.release("one", ann.claim.claimId, late)),
  ]).toEqual(["claim_lost", "claim_lost"]);
});

test("a claim that nobody renews ends by itself, and one that is renewed does not", async () => {
  await world.running("one");
  const { claim, token } = await asked("ann");
  await world.clock.pass(50_000);
  await world.server.claims.renew("one", claim.claimId, { token, ttlSeconds: 60 });
  await world.clock.pass(59_999);
  expect([await use(token), await use()]).toEqual(["ok", "claim_held"]);
  await world.clock.pass(1);
  expect([await use(token), await use()]).toEqual(["claim_lost", "ok"]);
  // The end itself has a number, so that a call of the last holder that is still on its way comes too late.
  expect((await asked("bob")).claim.fence).toBe(3);
});

test("a release frees it at once; the next number is higher all the same", async () => {
  const { lease } = await world.running("one");
  const { claim, token } = await asked("ann");
  await world.server.claims.release("one", claim.claimId, { token });
  expect(world.provider.keeperOf(refOf(lease)).claim).toEqual({ fence: 2, required: false });
  expect([await use(), await use(token), (await asked("bob")).claim.fence]).toEqual(["ok", "claim_lost", 3]);
});

test("of many who claim at once one gets it", async () => {
  await world.running("one");
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => codeOf(asked(`c${i}`))));
  expect(all.filter((code) => code === "ok")).toHaveLength(1);
  expect(new Set(all)).toEqual(new Set(["ok", "claim_held"]));
});

test("a call that waits for its sandbox while another takes the claim over does not go on under the other's number", async () => {
  await world.running("one");
  const ann = await asked("ann");
  await world.server.sandboxes.stop("one", { claimToken: ann.token });
  const launch = world.provider.launch.bind(world.provider);
  world.provider.launch = async (...launched) => {
    world.provider.launch = launch;
    await asked("bob", "takeover");
    return launch(...launched);
  };
  expect(await use(ann.token)).toBe("claim_lost");
});

test.each(["stop", "delete"] as const)(
  "a claim that comes between is not passed over by a %s",
  async (what) => {
    const { sandboxes } = world.server;
    const { sandboxId } = await world.running("one");
    const save = world.store.save.bind(world.store);
    world.store.save = async (...saved) => {
      world.store.save = save;
      await asked("ann");
      return save(...saved);
    };
    const wish = { stop: () => sandboxes.stop("one"), delete: () => sandboxes.delete("one", force) }[what];
    expect(await codeOf(wish())).toBe("claim_held");
    expect((await world.store.holding(sandboxId))?.sandbox.desired).toBe("active");
  },
);
const force = { mode: "force", waitMs: 0 } as const;

test("whoever claims one whose keeper does not answer gets the token, and its next instance is told", async () => {
  const { sandboxId, lease } = await world.running("one");
  FakeProvider.prototype.kill.call(world.provider, refOf(lease));
  const { token } = await asked("ann");
  await world.clock.pass(10_000);
  expect([await use(token), await use()]).toEqual(["ok", "claim_held"]);
  const next = await world.store.holding(sandboxId);
  if (next?.lease === undefined) throw new Error("it has no instance");
  expect(next.sandbox.generation).toBe(2);
  expect(world.provider.keeperOf(refOf(next.lease)).claim).toEqual({ fence: 1, required: true });
});

test("rows that have forgotten claims go on from the number that the keeper knows", async () => {
  const { lease } = await world.running("one");
  world.provider.keeperOf(refOf(lease)).claim = { fence: 7, required: true };
  await world.clock.pass(1_000);
  world.cutLines(lease);
  await world.clock.pass(1);
  expect(world.provider.keeperOf(refOf(lease)).claim).toEqual({ fence: 8, required: false });
  expect([await use(), (await asked("ann")).claim.fence]).toEqual(["ok", 9]);
});
