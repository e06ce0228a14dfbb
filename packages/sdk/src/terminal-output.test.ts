import { expect, test } from "bun:test";
import { type TerminalEvent, TerminalOutput } from "./terminal-output.ts";

const chunk = (offset: number, length: number): TerminalEvent => ({
  type: "output",
  offset,
  bytes: new Uint8Array(length),
});

test("while nobody reads everything is taken, and the newest is kept with the loss told", async () => {
  const acks: number[] = [];
  const output = new TerminalOutput((offset) => acks.push(offset));
  const size = 100 * 1024;
  for (let i = 0; i < 5; i++) output.push(chunk(i * size, size));
  output.end();
  expect(acks).toEqual([1, 2, 3, 4, 5].map((i) => i * size));
  const events = await Array.fromAsync(output.read());
  expect(events).toEqual([
    { type: "truncated", from: 0, to: 3 * size, restore: "" },
    chunk(3 * size, size),
    chunk(4 * size, size),
  ]);
});

test("a loss that was told already grows, and keeps what the screen needs", async () => {
  const output = new TerminalOutput(() => {});
  output.push(chunk(0, 10));
  output.push({ type: "truncated", from: 10, to: 1000, restore: "\x1b[?25l" });
  output.push(chunk(1000, 300 * 1024));
  output.push(chunk(1000 + 300 * 1024, 5));
  output.end();
  expect(await Array.fromAsync(output.read())).toEqual([
    { type: "truncated", from: 0, to: 1000 + 300 * 1024, restore: "\x1b[?25l" },
    chunk(1000 + 300 * 1024, 5),
  ]);
});

test("while somebody reads, an event is acknowledged when the next one is asked for", async () => {
  const acks: number[] = [];
  const output = new TerminalOutput((offset) => acks.push(offset));
  const reader = output.read();
  const first = reader.next();
  output.push(chunk(0, 10));
  output.push(chunk(10, 10));
  expect((await first).value).toEqual(chunk(0, 10));
  expect(acks).toEqual([]);
  await reader.next();
  expect(acks).toEqual([10]);
  await reader.return(undefined);
  output.push(chunk(20, 10));
  expect(acks).toEqual([10, 30]);
});

test("what went wrong is told after what there is; a second reader at once is refused", async () => {
  const output = new TerminalOutput(() => {});
  output.push(chunk(0, 1));
  output.end({ error: new Error("gone") });
  const reader = output.read();
  expect((await reader.next()).value).toEqual(chunk(0, 1));
  expect(output.read().next()).rejects.toThrow("already being read");
  expect(reader.next()).rejects.toThrow("gone");
});
