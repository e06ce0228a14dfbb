import { expect, test } from "bun:test";
import { Drawing } from "./drawing.ts";

test("a screen that does not come along is not given more than it can draw in a moment", async () => {
  const drawn: (() => void)[] = [];
  const drawing = new Drawing({ write: (_, done) => void drawn.push(done) });
  const piece = new Uint8Array(64 * 1024);
  for (let no = 0; no < 4; no++) await drawing.add(piece);
  let isTaken = false;
  const fifth = drawing.add(piece).then(() => {
    isTaken = true;
  });
  drawn.shift()?.();
  drawn.shift()?.();
  await Promise.resolve();
  expect(isTaken).toBe(false);
  drawn.shift()?.();
  await fifth;
  expect(isTaken).toBe(true);
});
