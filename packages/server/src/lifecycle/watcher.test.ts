import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Provider } from "@holdfast/core";
import { TestWorld } from "./test-world.ts";

let world: TestWorld;
/** Every line that was made to the backend: what it tells by, and how it breaks. */
let lines: { tell: (sandboxId: string | undefined) => void; breakOff: () => void }[];

beforeEach(async () => {
  world = new TestWorld();
  lines = [];
  const seam: Provider = world.provider;
  seam.watch = (onChange, signal) =>
    new Promise((resolve, reject) => {
      lines.push({ tell: onChange, breakOff: () => reject(new Error("broken")) });
      signal.addEventListener("abort", () => resolve());
      onChange(undefined);
    });
  await world.server.start();
});
afterEach(() => world.close());

/** Dies without its line being cut: as one whose machine is somewhere else. */
async function dieUnheard(): Promise<string> {
  const { lease } = await world.running("one");
  const [ref] = world.provider.refs();
  if (ref === undefined) throw new Error("it has no instance");
  const cut = world.cutLines.bind(world);
  world.cutLines = () => {};
  world.provider.kill(ref);
  world.cutLines = cut;
  return lease.sandboxId;
}

test("what a backend tells makes us look at once, and is believed only if it is so", async () => {
  const sandboxId = await dieUnheard();
  lines[0]?.tell("another");
  expect(await world.phaseOf("one")).toBe("live");
  lines[0]?.tell(sandboxId);
  await world.clock.until(async () => (await world.phaseOf("one")) === undefined, { withinMs: 1_000 });
  const { lease } = await world.running("two");
  lines[0]?.tell(lease.sandboxId);
  await world.clock.pass(1_000);
  expect(await world.phaseOf("two")).toBe("live");
});

test("a line that breaks is made again, later each time, and everything is looked at then", async () => {
  await dieUnheard();
  lines[0]?.breakOff();
  await world.clock.until(async () => lines.length === 2, { withinMs: 30_000 });
  await world.clock.until(async () => (await world.phaseOf("one")) === undefined, { withinMs: 1_000 });
  for (let i = 1; i < 10; i++) {
    lines.at(-1)?.breakOff();
    await world.clock.pass(1_000);
  }
  expect(lines.length).toBeLessThan(8);
});
