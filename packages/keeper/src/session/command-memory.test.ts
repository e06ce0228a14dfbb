import { expect, test } from "bun:test";
import { fstatSync, readFileSync } from "node:fs";
import { CommandMemory } from "./command-memory.ts";
import { openDescriptors } from "./test-sessions.ts";

test("each command is read from the beginning, and the room of a long one is given back", () => {
  const before = openDescriptors();
  const memory = new CommandMemory();
  const first = (count: number) => readFileSync(memory.fd, "utf8").split("\0").slice(0, count);
  memory.put(["1", "a text"]);
  expect(first(2)).toEqual(["1", "a text"]);
  memory.put(["2", "é".repeat(100_000)]);
  expect(first(2)).toEqual(["2", "é".repeat(100_000)]);
  memory.put(["3", "b"]);
  expect(first(2)).toEqual(["3", "b"]);
  expect(fstatSync(memory.fd).size).toBe(4);
  memory.close();
  memory.close();
  memory.put(["4", "c"]);
  expect(openDescriptors()).toBe(before);
});
