import { expect, test } from "bun:test";
import { fakeKeeper, refusal } from "./fake-keeper.ts";

test("a watch outlasts the time after which the runtime closes silent connections, and tells the end", async () => {
  await using keeper = fakeKeeper({ "/v1/watch": () => new Response(endless()) });
  let ends = 0;
  const ended = Promise.withResolvers<void>();
  await keeper.link.watch({
    onEnd: () => {
      ends++;
      ended.resolve();
    },
  });
  await silentConnectionClosed(keeper.socketPath);
  // The runtime closes all that are due at once: by the answer to this, the news of each has come.
  await fetch("http://keeper/", { unix: keeper.socketPath });
  expect(ends).toBe(0);
  await keeper.stop();
  await ended.promise;
  expect(ends).toBe(1);
});

test("the keeper learns at once that a watch is closed, and who closed it hears nothing", async () => {
  const left = Promise.withResolvers<void>();
  const seen: (string | null)[] = [];
  await using keeper = fakeKeeper({
    "/v1/watch": ({ headers }) => {
      seen.push(headers.get("Authorization"), headers.get("Holdfast-Fence"));
      return new Response(endless(() => left.resolve()));
    },
  });
  const watch = await keeper.link.watch({ onEnd: () => seen.push("end") });
  watch.close();
  await left.promise;
  await keeper.stop();
  expect(seen).toEqual(["Bearer the secret", "3"]);
});

test.each([
  [
    "a server that was replaced",
    () => refusal(409, { code: "fence_stale", message: "older" }),
    { code: "fence_stale" },
  ],
  ["nonsense", () => new Response("", { status: 500 }), { code: "internal" }],
])("no watch for %s", async (_, answer, error) => {
  await using keeper = fakeKeeper({ "/v1/watch": answer });
  expect(await keeper.link.watch({ onEnd: () => {} }).catch((thrown) => thrown)).toMatchObject(error);
});

test("no watch where nobody listens", async () => {
  const keeper = fakeKeeper({});
  await keeper[Symbol.asyncDispose]();
  const error = await keeper.link.watch({ onEnd: () => {} }).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "keeper_lost", started: "no" });
});

function endless(cancel = () => {}): ReadableStream {
  return new ReadableStream({ start: (to) => to.enqueue(Buffer.from("\n")), cancel });
}

async function silentConnectionClosed(unix: string): Promise<void> {
  const closed = Promise.withResolvers<void>();
  await Bun.connect({ unix, socket: { data() {}, close: () => closed.resolve() } });
  await closed.promise;
}
