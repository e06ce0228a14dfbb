import { expect, test } from "bun:test";
import { Lines, type Wire } from "./index.ts";

test("an abort is heard before the connection is there, which is closed when it comes", async () => {
  const opening = Promise.withResolvers<Wire>();
  const lines = new Lines({ open: () => opening.promise, host: "there", keptMs: 1_000 });
  const signal = AbortSignal.timeout(10);
  const asked = lines.ask({ method: "GET", path: "/", headers: {}, body: undefined, signal });
  expect(await asked.catch((error: Error) => error.name)).toBe("TimeoutError");
  const done: string[] = [];
  const write = () => done.push("written") > 0;
  opening.resolve({
    write,
    isSending: false,
    holdProgram() {},
    pause() {},
    resume() {},
    end: () => void done.push("ended"),
  });
  await Bun.sleep(1);
  expect(done).toEqual(["ended"]);
});
