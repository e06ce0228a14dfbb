import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestServer } from "../test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

const get = (path: string) => server.app.request(path, {}, {});

test("the API page loads nothing but files of this server, under a policy that allows nothing else", async () => {
  const page = await get("/docs");
  expect(page.headers.get("Content-Security-Policy")).toContain("default-src 'none'; script-src 'self';");
  expect(page.headers.get("Content-Security-Policy")).not.toContain("unsafe");
  const html = await page.text();
  const loaded = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? "");
  expect(loaded).toHaveLength(5);
  for (const path of loaded.filter((path) => !path.startsWith("data:"))) {
    const asset = await get(path);
    expect([path, asset.status]).toEqual([path, 200]);
    expect(asset.headers.get("Content-Type")).toBe(
      `text/${path.endsWith("css") ? "css" : "javascript"}; charset=utf-8`,
    );
  }
});

test.each([
  "/docs/assets/package.json",
  "/docs/nothing.md",
  "/docs/..%2FREADME.md",
  "/docs/%2e%2e/package.json",
])("%s is no page", async (path) => {
  expect((await get(path)).status).toBe(404);
});

test("llms.txt names pages that are there, without a token", async () => {
  const text = await (await get("/llms.txt")).text();
  expect(text).toStartWith("# Holdfast\n\n> ");
  const links = [...text.matchAll(/\]\(http:\/\/localhost(\/[^)]+)\)/g)].map((match) => match[1] ?? "");
  expect(links).toContain("/docs/durability.md");
  expect(links).toContain("/docs/skill.md");
  for (const path of links) expect([path, (await get(path)).status]).toEqual([path, 200]);
});

test("every route of the API is in a group, and the document is made once", async () => {
  const document = (await (await get("/openapi.json")).json()) as {
    paths: Record<string, Record<string, { tags: string[] }>>;
    tags: { name: string }[];
  };
  const groups = document.tags.map(({ name }) => name);
  const tagged = Object.values(document.paths).flatMap((item) =>
    Object.values(item).map(({ tags }) => tags[0]),
  );
  expect(new Set(tagged)).toEqual(new Set(groups));
  expect(document.paths["/v1/sandboxes/{id}/files/tar"]?.get?.tags).toEqual(["Files"]);
  expect(document.paths["/v1/snapshots/{snapshotId}"]?.get?.tags).toEqual(["Snapshots and forks"]);
  expect(document.paths["/v1/sandboxes/by-name/{name}"]?.put?.tags).toEqual(["Sandboxes"]);
});
