import { afterAll, expect, test } from "bun:test";
import { TestServer } from "../test-server.ts";

const server = await TestServer.start();
afterAll(() => server.close());

const LIST = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "sandbox_list", arguments: {} },
};

function ask(
  headers: Record<string, string> = {},
  request: { method?: string; body?: string; trusted?: boolean } = {},
): Promise<Response> {
  const { method = "POST", body = JSON.stringify(LIST), trusted } = request;
  const about = {
    Authorization: "Bearer token",
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    ...headers,
  };
  const sent = { method, headers: about, ...(method === "POST" && { body }) };
  return Promise.resolve(server.app.request("/mcp", sent, trusted === undefined ? {} : { trusted }));
}

test("a call reaches the API of the same process, with its caller's token", async () => {
  const answer = await ask();
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"sandboxes":[]')]);
});

test("over the unix socket it needs no token, and the API behind it neither", async () => {
  const answer = await ask({ Authorization: "" }, { trusted: true });
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"sandboxes":[]')]);
});

test.each([
  ["no token", { Authorization: "" }, {}, 401],
  ["a wrong token", { Authorization: "Bearer wrong" }, {}, 401],
  ["a page of another origin", { Origin: "http://evil.example", Host: "localhost" }, {}, 403],
  ["a session to listen to", {}, { method: "GET" }, 405],
  ["a session to end", {}, { method: "DELETE" }, 405],
  ["no JSON", {}, { body: "{" }, 400],
  ["another kind of body", { "Content-Type": "text/plain" }, {}, 415],
  ["a body that is too large", {}, { body: JSON.stringify({ ...LIST, pad: "x".repeat(17 * 2 ** 20) }) }, 413],
] as const)("%s is refused", async (_, headers, request, status) => {
  const answer = await ask(headers, request);
  const text = await answer.text();
  expect(answer.status).toBe(status);
  expect(text).not.toContain("    at ");
});
