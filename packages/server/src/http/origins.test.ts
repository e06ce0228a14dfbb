import { expect, test } from "bun:test";
import { newApp } from "../app.ts";
import { silentLog } from "../log.ts";
import { Meters } from "../observe/meters.ts";
import { bearerAuth } from "./auth.ts";
import { errorResponse } from "./errors.ts";
import { observed } from "./observed.ts";
import { originPolicy } from "./origins.ts";

const APP = "https://app.example.com";

function ask(allowed: string[], headers: Record<string, string>, method = "GET"): Promise<Response> {
  const app = newApp();
  app.use(observed({ app, log: silentLog, meters: new Meters(), tracer: undefined }));
  app.use(originPolicy(allowed));
  app.use(bearerAuth(() => "right"));
  app.onError(errorResponse);
  app.get("/", () => new Response("in", { headers: { Vary: "Accept" } }));
  const about = { Authorization: "Bearer right", Host: "127.0.0.1:4750", ...headers };
  return Promise.resolve(app.request("/", { method, headers: about }, {}));
}

test.each([
  ["a program that is no browser", [], {}, 200],
  ["the server's own page", [], { Origin: "http://127.0.0.1:4750" }, 200],
  [
    "its own page behind a proxy with TLS",
    [],
    { Origin: "https://box.example.com", Host: "box.example.com" },
    200,
  ],
  ["another page", [], { Origin: APP }, 403],
  ["a page on another port of the same machine", [], { Origin: "http://127.0.0.1:3000" }, 403],
  ["a preview's page", [], { Origin: "http://3000-sbx_1-t0ken.localhost:4751", Host: "localhost:4750" }, 403],
  ["a page without an origin of its own", [], { Origin: "null" }, 403],
  ["another page, on a WebSocket", [], { Origin: APP, Upgrade: "websocket" }, 403],
  ["a page that was allowed", [APP], { Origin: APP }, 200],
  ["one that only begins like it", [APP], { Origin: `${APP}.evil.example` }, 403],
  ["any page, where all are", ["*"], { Origin: APP }, 200],
] as const)("%s", async (_, allowed, headers, status) => {
  const answer = await ask([...allowed], headers);
  expect(answer.status).toBe(status);
  const { error } = status === 403 ? await answer.json() : { error: undefined };
  if (error !== undefined) expect(error).toMatchObject({ code: "forbidden", started: "no" });
});

test("a page that was allowed can read the answer and what its headers say, also of a failure", async () => {
  for (const [token, status] of [
    ["right", 200],
    ["wrong", 401],
  ] as const) {
    const answer = await ask([APP], { Origin: APP, Authorization: `Bearer ${token}` });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("Access-Control-Allow-Origin")).toBe(APP);
    expect(answer.headers.get("Access-Control-Expose-Headers")).toContain("Holdfast-Generation");
    expect(answer.headers.get("Access-Control-Allow-Credentials")).toBeNull();
    expect(answer.headers.get("Vary")).toContain("Origin");
  }
});

test("a preflight is answered without a token, and only for a page that was allowed", async () => {
  const preflight = {
    Origin: APP,
    Authorization: "",
    "Access-Control-Request-Method": "PATCH",
    "Access-Control-Request-Headers": "authorization,if-generation",
  };
  const answer = await ask([APP], preflight, "OPTIONS");
  expect(answer.status).toBe(204);
  expect(answer.headers.get("Access-Control-Allow-Methods")).toContain("PATCH");
  expect(answer.headers.get("Access-Control-Allow-Headers")).toBe("authorization,if-generation");
  const refused = await ask([], preflight, "OPTIONS");
  expect([refused.status, refused.headers.get("Access-Control-Allow-Origin")]).toEqual([403, null]);
});
