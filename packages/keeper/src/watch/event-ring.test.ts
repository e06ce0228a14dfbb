import { expect, test } from "bun:test";
import type { WatchEvent } from "@holdfast/protocol";
import { Coalesced } from "./coalesced.ts";
import { EventRing } from "./event-ring.ts";

const created = (path: string): WatchEvent => ({ type: "created", path, directory: false });

test("a cursor goes on where it was, until what follows it is not kept any more", () => {
  const ring = new EventRing({ most: 2 });
  const start = ring.cursorAt(ring.next);
  ring.push([created("/a"), created("/b")]);
  const [first] = ring.read(ring.placeOf(start) ?? 0, 1) ?? [];
  expect(first).toEqual({ cursor: expect.any(String), event: created("/a") });
  expect(ring.read(ring.placeOf(first?.cursor ?? "") ?? 0, 9)?.map(({ event }) => event)).toEqual([
    created("/b"),
  ]);
  ring.push([created("/c"), created("/d"), created("/e")]);
  expect(ring.read(ring.placeOf(start) ?? 0, 9)).toBeUndefined();
  expect(ring.read(ring.next, 9)).toEqual([]);
  for (const other of ["", "x", "deadbeef:1", `${start}0`, start.replace(/\d+$/, "-1")])
    expect([other, ring.placeOf(other)]).toEqual([other, undefined]);
});

type Step = [type: "created" | "modified" | "deleted", path: string, directory?: "directory"];

test.each<[string, Step[], string[]]>([
  [
    "written in pieces",
    [
      ["created", "/a"],
      ["modified", "/a"],
      ["modified", "/a"],
    ],
    ["created /a"],
  ],
  [
    "replaced",
    [
      ["deleted", "/a"],
      ["created", "/a"],
    ],
    ["modified /a"],
  ],
  [
    "came and went",
    [
      ["created", "/a"],
      ["deleted", "/a"],
    ],
    ["deleted /a"],
  ],
  [
    "in its place",
    [
      ["modified", "/a"],
      ["modified", "/b"],
      ["deleted", "/a"],
    ],
    ["deleted /a", "modified /b"],
  ],
  [
    "a new directory under an old name is another one",
    [
      ["deleted", "/d", "directory"],
      ["created", "/d", "directory"],
    ],
    ["deleted /d", "created /d"],
  ],
  [
    "nothing is merged across a change of the tree",
    [
      ["created", "/d/a"],
      ["deleted", "/d", "directory"],
      ["created", "/d", "directory"],
      ["created", "/d/a"],
    ],
    ["created /d/a", "deleted /d", "created /d", "created /d/a"],
  ],
])("%s", (_, steps, told) => {
  const coalesced = new Coalesced();
  for (const [type, path, kind] of steps) coalesced.add({ type, path, directory: kind === "directory" });
  expect(coalesced.take().map(({ type, path }) => `${type} ${path}`)).toEqual(told);
});
