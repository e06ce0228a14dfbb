import { afterAll, beforeAll, expect, test } from "bun:test";
import { codeOf, TestServer } from "./test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

test("an address stays while it is said again, and whoever visits by one that is no longer good is cut", async () => {
  const { id } = (await server.call("POST", "/sandboxes", { body: { name: "a" } })).body;
  const path = "/sandboxes/a/ports";
  const expose = (body: object) => server.call("POST", path, { body: { port: 3000, ...body } });
  const first = await expose({});
  expect(first).toMatchObject({ status: 201, body: { port: 3000, wake: false, public: false } });
  expect(await expose({ wake: true })).toMatchObject({
    status: 200,
    body: { url: first.body.url, wake: true },
  });
  expect(server.cut).toEqual([]);

  const url = `http://3000-${id}.localhost:4751/`;
  expect(await expose({ public: true })).toMatchObject({ status: 200, body: { url, public: true } });
  expect(server.cut).toEqual([`${id}:3000`]);
  const second = await expose({});
  expect(second.body.url).not.toBe(first.body.url);
  for (let i = 0; i < 2; i++) expect((await server.call("DELETE", `${path}/3000`)).status).toBe(204);
  expect(codeOf(await expose({ port: 0 }))).toBe("invalid_argument");

  // Who has no claim cannot expose what another has claimed.
  await server.call("POST", "/sandboxes/a/claims", { body: { holder: "somebody" } });
  expect(codeOf(await expose({}))).toBe("claim_held");
});
