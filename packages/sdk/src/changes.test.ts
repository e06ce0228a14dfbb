import { expect, test } from "bun:test";
import { followChanges } from "./changes.ts";
import type { Fetch } from "./client.ts";

test("a line that breaks goes on after the last event, and says that it was lost and is back", async () => {
  const asked: (string | null)[] = [];
  const bodies = [
    'id: a-1\ndata: {"type":"resync"}\n\n',
    'id: a-2\ndata: {"type":"gone","sandboxId":"s"}\n\n',
  ];
  const fetch: Fetch = async (url) => {
    asked.push(new URL(url).searchParams.get("since"));
    return new Response(bodies.shift() ?? ": keep-alive\n\n");
  };
  const line: string[] = [];
  const left = new AbortController();
  const options = { url: "http://test", token: "t", fetch, signal: left.signal };
  const told: string[] = [];
  for await (const { type } of followChanges({ ...options, onConnection: (change) => line.push(change) })) {
    told.push(type);
    if (type === "gone") break;
  }
  expect(told).toEqual(["resync", "gone"]);
  expect(asked).toEqual([null, "a-1"]);
  expect(line).toEqual(["lost", "back"]);
});
