import { expect, test } from "bun:test";
import { Ring } from "./ring.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (from: Uint8Array) => new TextDecoder().decode(from);

test("keeps the last bytes under their offsets and tells what it drops, in order", () => {
  const ring = new Ring(8);
  let lost = "";
  const drop = (piece: Uint8Array) => {
    lost += text(piece);
  };
  for (const chunk of ["abc", "defg", "hij", "", "k"]) ring.append(bytes(chunk), drop);
  expect({ start: ring.start, end: ring.end, lost }).toEqual({ start: 3, end: 11, lost: "abc" });
  expect(text(ring.read(3, 100))).toBe("defghijk");
  expect(text(ring.read(6, 3))).toBe("ghi");
  expect(text(ring.read(11, 3))).toBe("");
});

test("a chunk larger than the whole ring leaves its own tail", () => {
  const ring = new Ring(4);
  let lost = "";
  ring.append(bytes("ab"), () => {});
  ring.append(bytes("cdefghijk"), (piece) => {
    lost += text(piece);
  });
  expect({ start: ring.start, end: ring.end, lost }).toEqual({ start: 7, end: 11, lost: "abcdefg" });
  expect(text(ring.read(7, 9))).toBe("hijk");
});

test("agrees with a plain string over many random appends, growing on the way", () => {
  const capacity = 100_000;
  const ring = new Ring(capacity);
  let all = "";
  let lost = "";
  for (let i = 0; i < 400; i++) {
    const chunk = String.fromCharCode(97 + (i % 26)).repeat((i * 7919) % 3000);
    all += chunk;
    ring.append(bytes(chunk), (piece) => {
      lost += text(piece);
    });
  }
  expect(ring.end).toBe(all.length);
  expect(ring.start).toBe(all.length - capacity);
  expect(lost).toBe(all.slice(0, ring.start));
  expect(text(ring.read(ring.start, capacity))).toBe(all.slice(ring.start));
});
