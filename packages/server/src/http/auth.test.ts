import { expect, test } from "bun:test";
import { Hono } from "hono";
import type { AppEnv } from "../app.ts";
import { bearerAuth } from "./auth.ts";

const app = new Hono<AppEnv>();
app.use(bearerAuth(() => "right"));
app.get("/", (c) => c.text("in"));
app.onError((error, c) => c.text(error.message, 401));

test.each([
  [{ Authorization: "Bearer right" }, "in"],
  [{ Authorization: "Bearer wrong" }, "this is not the server's token"],
  [{}, "this call needs the server's token"],
])("%j: %s", async (headers, answer) => {
  expect(await (await app.request("/", { headers }, {})).text()).toBe(answer);
});
