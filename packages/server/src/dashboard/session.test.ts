import { expect, test } from "bun:test";
import { Sessions } from "./session.ts";

const carrying = (cookie: string) => new Headers({ cookie: `other=1; ${cookie.split(";")[0]}` });

test("a session is good until its time, for every server with the same token and for no other", () => {
  let now = 1_000;
  const sessions = new Sessions({ token: () => "one", now: () => now });
  const carried = carrying(sessions.begin({ secure: false }));
  expect(sessions.has(carried)).toBe(true);
  expect(new Sessions({ token: () => "one", now: () => now }).has(carried)).toBe(true);
  expect(new Sessions({ token: () => "two", now: () => now }).has(carried)).toBe(false);
  now += 7 * 86_400_000 - 1;
  expect(sessions.has(carried)).toBe(true);
  now += 1;
  expect(sessions.has(carried)).toBe(false);
});

test("nothing of it can be changed", () => {
  const sessions = new Sessions({ token: () => "one" });
  const value = sessions.begin({ secure: false }).split(";")[0] ?? "";
  const [expiresAt = "", nonce, signature] = value.replace("holdfast-session=", "").split(".");
  const has = (text: string) => sessions.has(carrying(`holdfast-session=${text}`));
  expect(has(`${expiresAt}.${nonce}.${signature}`)).toBe(true);
  expect(has(`${Number(expiresAt) + 1}.${nonce}.${signature}`)).toBe(false);
  expect(has(`${expiresAt}.x.${signature}`)).toBe(false);
  expect(has(`${expiresAt}.${nonce}.`)).toBe(false);
  expect(has("")).toBe(false);
});

test("the cookie is for this host's pages alone, and over TLS only there", () => {
  const sessions = new Sessions({ token: () => "one" });
  const begun = sessions.begin({ secure: true });
  expect(begun).toEndWith("; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure");
  expect(sessions.end({ secure: false })).toBe(
    "holdfast-session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
  );
});
