import { expect, test } from "bun:test";
import { HoldfastError, Sandbox } from "holdfast";
import { TestServer } from "./harness.ts";

/** A server of its own, with limits of its own, gone afterwards. */
function limited(title: string, args: string[], work: (server: TestServer) => Promise<void>): void {
  const titled = async () => {
    const server = await TestServer.start({ args });
    try {
      await work(server);
    } finally {
      await server.dispose();
    }
  };
  test(title, titled, 120_000);
}

limited(
  "scenario 44: of 50 that want a place of 10 at once exactly 10 get one, and the others are told the numbers",
  ["--max-sandboxes", "10"],
  async (server) => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => server.fetch("/v1/sandboxes", { method: "POST", body: "{}" })),
    );
    const refused = answers.filter(({ status }) => status !== 201);
    expect(answers.length - refused.length).toBe(10);
    for (const answer of refused) {
      expect(Number(answer.headers.get("Retry-After"))).toBeGreaterThan(0);
      expect({ status: answer.status, ...(await answer.json()) }).toMatchObject({
        status: 503,
        error: {
          code: "capacity_exhausted",
          retryable: true,
          started: "no",
          details: { resource: "slots", used: 10, capacity: 10, wanted: 1 },
        },
      });
    }
    const held = await Sandbox.list(server.at);
    expect(held.map(({ state }) => state)).toEqual(Array(10).fill("running"));
    // A refusal destroys nothing, and what is refused leaves nothing.
    const [one] = held;
    expect(await one?.exec("echo here")).toMatchObject({ stdout: "here\n", generation: 1 });
  },
);

limited(
  "those who wait in the queue all get their place, one after the other",
  ["--max-sandboxes", "3"],
  async (server) => {
    let running = 0;
    let most = 0;
    const visit = async () => {
      const sandbox = await Sandbox.create({}, { ...server.at, queueSeconds: 60 });
      most = Math.max(most, ++running);
      const { stdout } = await sandbox.exec("echo here");
      running--;
      await sandbox.delete();
      return stdout;
    };
    expect(await Promise.all(Array.from({ length: 20 }, visit))).toEqual(Array(20).fill("here\n"));
    expect(most).toBeLessThanOrEqual(3);
  },
);

limited("whoever waits in vain is told so at its own deadline", ["--max-sandboxes", "1"], async (server) => {
  const first = await Sandbox.create({}, server.at);
  const since = performance.now();
  const refusal = await Sandbox.create({}, { ...server.at, queueSeconds: 1 }).catch(
    (error: unknown) => error,
  );
  expect(refusal).toMatchObject({ code: "capacity_exhausted" });
  expect(performance.now() - since).toBeGreaterThan(990);
  // A stopped one has no place: it needs one again to come back.
  await first.stop();
  const second = await Sandbox.create({}, server.at);
  expect(await first.exec("true").catch(codeOf)).toBe("capacity_exhausted");
  await second.stop();
  expect(await first.exec("echo back")).toMatchObject({ stdout: "back\n", generation: 2 });
});

limited("100 that get or create one name at once get one sandbox", [], async (server) => {
  const all = await Promise.all(
    Array.from({ length: 100 }, () => Sandbox.getOrCreate({ name: "shared" }, server.at)),
  );
  expect([...new Set(all.map(({ id }) => id))]).toHaveLength(1);
  expect(all.map(({ generation, state }) => [generation, state])).toEqual(all.map(() => [1, "running"]));
  const events = await Sandbox.events("shared", server.at);
  expect(events.map(({ type }) => type)).toEqual(["created", "launching", "live"]);
});

limited("a tenant's quota is its own refusal, with its numbers", ["--quota", "2"], async (server) => {
  const [first] = await Promise.all([1, 2].map(() => Sandbox.create({}, server.at)));
  const refusal = await Sandbox.create({}, server.at).catch((error: unknown) => error);
  expect(refusal).toMatchObject({
    code: "quota_exceeded",
    status: 429,
    details: { used: 2, quota: 2 },
    started: "no",
  });
  const waiting = Sandbox.create({}, { ...server.at, queueSeconds: 60 });
  await first?.delete();
  expect((await waiting).state).toBe("running");
});

function codeOf(error: unknown): unknown {
  return error instanceof HoldfastError ? error.code : error;
}
