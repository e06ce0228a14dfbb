import { expect, test } from "bun:test";
import { Hono } from "hono";
import { z } from "zod";
import type { AppEnv } from "../app.ts";
import { TestServer } from "../test-server.ts";
import { bodyOf } from "./body.ts";

const app = new Hono<AppEnv>();
app.post("/", async (c) =>
  c.text(JSON.stringify(await bodyOf(c, z.strictObject({ a: z.number().default(1) })))),
);
app.onError((error, c) => c.text(error.message));

const notSaid = "the request's body is not said to be JSON";
const notJson = "the request's body is not JSON";
test.each<[type: string | undefined, body: string, answer: string]>([
  ["application/json", '{"a":2}', '{"a":2}'],
  ["Application/JSON; charset=utf-8", '{"a":2}', '{"a":2}'],
  ["application/vnd.x+json", '{"a":2}', '{"a":2}'],
  ["application/json", "", '{"a":1}'],
  [undefined, "", '{"a":1}'],
  [undefined, '{"a":2}', notSaid],
  ["text/plain", '{"a":2}', notSaid],
  ["text/plain; application/json", '{"a":2}', notSaid],
  ["application/jsonp", '{"a":2}', notSaid],
  ["application/x-www-form-urlencoded", '{"a":2}', notSaid],
  ["application/json", '{"a":2', notJson],
  ["application/json", "null", "must be an object"],
  ["application/json", '{"a":"2"}', "a: must be a number"],
  ["application/json", '{"b":2}', 'there is no field "b" here'],
])("%s, %s: %s", async (type, body, answer) => {
  const request = new Request("http://x/", { method: "POST", body: new TextEncoder().encode(body) });
  if (type !== undefined) request.headers.set("Content-Type", type);
  expect(await (await app.request(request)).text()).toBe(answer);
});

test("what is no JSON is refused with a hint, on the routes that check it themselves, too", async () => {
  const server = await TestServer.start();
  for (const path of ["/sandboxes/x/exec", "/sandboxes/x/sessions/y/exec", "/sandboxes"]) {
    const headers = { "Content-Type": "text/plain" };
    const { status, body } = await server.call("POST", path, { body: { command: "true" }, headers });
    expect([status, body.error]).toEqual([
      400,
      expect.objectContaining({
        code: "invalid_argument",
        hint: "send a JSON body with Content-Type: application/json",
        started: "no",
      }),
    ]);
  }
  await server.close();
});
