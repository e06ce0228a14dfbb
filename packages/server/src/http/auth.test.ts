import { expect, test } from "bun:test";
import { Hono } from "hono";
import type { AppEnv } from "../app.ts";
import { Sessions } from "../dashboard/session.ts";
import { bearerAuth } from "./auth.ts";

const sessions = new Sessions({ token: () => "right" });
const Cookie = sessions.begin({ secure: false }).split(";")[0] ?? "";
const Host = "127.0.0.1:4750";
const app = new Hono<AppEnv>();
app.use(bearerAuth(() => "right", sessions));
app.all("/", (c) => c.text("in"));
app.onError((error, c) => c.text(error.message, 401));

const elsewhere = "another site's page may not act for who is signed in here";
test.each<[string, Record<string, string>, string]>([
  ["GET", { Authorization: "Bearer right" }, "in"],
  ["GET", { Authorization: "Bearer wrong" }, "this is not the server's token"],
  ["GET", {}, "this call needs the server's token"],
  ["POST", { Cookie, "Sec-Fetch-Site": "same-origin" }, "in"],
  ["POST", { Cookie, Origin: `http://${Host}` }, "in"],
  ["POST", { Cookie }, elsewhere],
  ["POST", { Cookie, "Sec-Fetch-Site": "same-site" }, elsewhere],
  ["POST", { Cookie, Origin: "http://127.0.0.1:3000" }, elsewhere],
  ["POST", { Cookie, Origin: "null" }, elsewhere],
  ["POST", { Cookie, Origin: "http://evil.example", "Sec-Fetch-Site": "same-origin" }, elsewhere],
  ["GET", { Cookie }, "in"],
  ["GET", { Cookie, "Sec-Fetch-Site": "none" }, "in"],
  ["GET", { Cookie, "Sec-Fetch-Site": "cross-site" }, elsewhere],
  ["GET", { Cookie, Upgrade: "websocket" }, elsewhere],
  ["GET", { Cookie, Upgrade: "websocket", Origin: "http://127.0.0.1:3000" }, elsewhere],
  ["GET", { Cookie, Upgrade: "websocket", Origin: `http://${Host}` }, "in"],
  // A wrong token is told, though there is a session.
  ["GET", { Cookie, Authorization: "Bearer wrong" }, "this is not the server's token"],
])("%s %j: %s", async (method, headers, answer) => {
  const asked = await app.request("/", { method, headers: { Host, ...headers } }, {});
  expect(await asked.text()).toBe(answer);
});
