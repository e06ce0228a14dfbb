import { expect, test } from "bun:test";
import { Client, type SandboxInfo } from "holdfast";
import { withSandbox } from "./presence.ts";

/** A server that has one sandbox in generation 4, and says what is left since the one that its caller names. */
function serverOf(left: Record<string, Partial<SandboxInfo>>) {
  const asked: (string | null)[] = [];
  const fetch = async (_: string, init: RequestInit) => {
    const known = new Headers(init.headers).get("If-Generation");
    asked.push(known);
    const info = {
      id: "sbx1",
      name: "a",
      generation: 4,
      continuity: "same-filesystem",
      ...left[known ?? ""],
    };
    return Response.json(info);
  };
  return { asked, client: Client.connect({ url: "http://test", token: "t", fetch }) };
}

test.each([
  [4, undefined],
  [
    3,
    /^the sandbox was started anew: this is generation 4, you knew 3\. Same disk\. Processes from before are gone/,
  ],
  [2, /A part of its disk is lost \(the home directory\)\. Processes from before are gone/],
  [1, /Its disk is new: files from before are gone, too\..* It had ended: oom \(too much\)\.$/],
])("who knew generation %i is told what is left of that one", async (generation, notice) => {
  const { client, asked } = serverOf({
    2: { continuity: "restored", losses: ["the home directory"] },
    1: { continuity: "fresh", lastDeath: { cause: "oom", at: "", detail: "too much" } },
  });
  const call = { client: await client, signal: new AbortController().signal, progress: () => undefined };
  const { facts } = await withSandbox(call, { sandbox: "a", generation }, async () => ({
    facts: {},
    text: "",
  }));
  expect(asked).toEqual([null, String(generation)]);
  if (notice === undefined) expect(facts.notice).toBeUndefined();
  else expect(facts.notice).toMatch(notice);
});

test("what was done is not lost with a server that goes away right after it", async () => {
  const info = { id: "sbx1", name: "a", generation: 4, continuity: "fresh" };
  let answers = 1;
  const fetch = async () => (answers-- > 0 ? Response.json(info) : new Response("", { status: 500 }));
  const client = await Client.connect({ url: "http://test", token: "t", fetch });
  const call = { client, signal: new AbortController().signal, progress: () => undefined };
  const told = await withSandbox(call, { sandbox: "a" }, async () => ({
    facts: { done: true },
    text: "yes",
  }));
  expect(told).toEqual({ facts: { done: true, sandbox: "a", generation: 4 }, text: "yes" });
});
