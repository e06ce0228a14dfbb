import { expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { type Client as ApiClient, HoldfastError } from "holdfast";
import { z } from "zod";
import { type Deps, type Tool, tool } from "./tool.ts";

const hints = { readOnlyHint: true };
const about = { title: "A test", description: "for a test", hints };

/** The official client, and a server with this one tool, without a socket. */
async function clientOf(one: Tool, failed: unknown[] = []): Promise<Client> {
  const deps: Deps = {
    connection: { client: async () => ({}) as ApiClient, failed: (error) => failed.push(error) },
    endsWork: (signal) => signal,
  };
  const newServer = () => {
    const server = new McpServer({ name: "test", version: "1" });
    one(server, deps);
    return server;
  };
  const handler = createMcpHandler(newServer);
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const fetch = (url: string | URL, init?: RequestInit) => handler.fetch(new Request(url, init));
  await client.connect(new StreamableHTTPClientTransport(new URL("http://test/mcp"), { fetch }));
  return client;
}

test("how far it is reaches the client before the result", async () => {
  const counting = tool({
    ...about,
    name: "count",
    input: z.strictObject({}),
    output: z.object({ done: z.boolean() }),
    async run(_, { progress }) {
      progress("first");
      progress("second");
      return { facts: { done: true }, text: "done" };
    },
  });
  const client = await clientOf(counting);
  const told: unknown[] = [];
  const onprogress = (progress: unknown) => void told.push(progress);
  const result = await client.callTool({ name: "count", arguments: {} }, { onprogress });
  expect(result.structuredContent).toEqual({ done: true });
  expect(told).toMatchObject([
    { progress: 1, message: "first" },
    { progress: 2, message: "second" },
  ]);
});

test("a failure is a result with what to do next, and the connection hears of it", async () => {
  const failure = new HoldfastError("unavailable", "it is\u001b[31m away", {
    hint: "try again",
    started: "unknown",
    details: { long: "x".repeat(5000) },
  });
  const failing = tool({
    ...about,
    name: "fail",
    input: z.strictObject({}),
    output: z.object({}),
    run: () => Promise.reject(failure),
  });
  const failed: unknown[] = [];
  const client = await clientOf(failing, failed);
  const result = await client.callTool({ name: "fail", arguments: {} });
  const [{ text = "" } = {}] = result.content as { text?: string }[];
  expect(result.isError).toBe(true);
  expect(text.split("\n").map((line) => line.slice(0, 70))).toEqual([
    "error: it is away",
    "code: unavailable (the same call can succeed later)",
    "hint: try again",
    "It is not known whether it was begun: look before you do it again.",
    expect.stringMatching(/^details: \{"long":"x+$/),
  ]);
  expect(text.length).toBeLessThan(1300);
  expect(failed).toEqual([failure]);
});
