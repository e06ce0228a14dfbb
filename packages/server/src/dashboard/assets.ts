import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const buildDir = resolve(import.meta.dir, "../../../../build/dashboard");

export interface Asset {
  readonly type: string;
  /** By the name that HTTP has for its encoding; `identity` is always there. */
  readonly bytes: Readonly<Record<string, Uint8Array<ArrayBuffer>>>;
}

/** The files of the dashboard that was built last, by name; `undefined` if there is none. They are small. */
export function loadAssets(dir = buildDir): ReadonlyMap<string, Asset> | undefined {
  const pointer = join(dir, "current");
  const built = existsSync(pointer) ? join(dir, readFileSync(pointer, "utf8").trim()) : undefined;
  if (built === undefined || !existsSync(join(built, "index.html"))) return undefined;
  const names = readdirSync(built).filter((name) => types[extensionOf(name)] !== undefined);
  return new Map(names.map((name) => [name, assetIn(built, name)]));
}

const types: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

const encodings = { br: ".br", gzip: ".gz", identity: "" };

function assetIn(dir: string, name: string): Asset {
  const found = Object.entries(encodings)
    .map(([encoding, suffix]) => [encoding, join(dir, name + suffix)] as const)
    .filter(([, path]) => existsSync(path))
    .map(([encoding, path]) => [encoding, new Uint8Array(readFileSync(path))] as const);
  return { type: types[extensionOf(name)] ?? "", bytes: Object.fromEntries(found) };
}

function extensionOf(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}
