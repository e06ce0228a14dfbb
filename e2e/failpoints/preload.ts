/**
 * Loaded into a server before its own code (`bun --preload`): wraps the ports through which it reaches its store, its
 * provider, its keepers and the copies of its disks, so that it can be killed right before or right after any call. The
 * product knows nothing of it.
 *
 * In the folder that HOLDFAST_FAILPOINTS names, every call is added to `trace` as one line, if that file exists; and if
 * there is a file `armed` with a point such as `store.save(live):2:after`, the second such call from that moment on is
 * the server's last act. The file is removed first, so that the next server lives.
 */
import { readFileSync } from "node:fs";
import { KeeperLink } from "../../packages/keeper-link/src/index.ts";
import type { DockerProviderOptions, LocalProviderOptions } from "../../packages/providers/src/index.ts";
import { SqliteStore } from "../../packages/store/src/index.ts";
import { labelOf } from "./label.ts";
import { wrapped } from "./wrapped.ts";

/** What the lifecycle says to a keeper; the rest is what commands do, and no part of a lease. */
const CONTROL = ["info", "admit", "watch", "quiesce", "resume", "touch", "claimFence"];

wrapPrototype("store", Object.getPrototypeOf(SqliteStore.prototype), (name) => name !== "constructor");
wrapPrototype("keeper", KeeperLink.prototype, (name) => CONTROL.includes(name));
await Bun.plugin({
  name: "failpoints around the providers' files",
  setup(build) {
    const files = new URL("./files.ts", import.meta.url).pathname;
    build.onLoad({ filter: /\/packages\/providers\/src\/.+\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replaceAll('"node:fs/promises"', JSON.stringify(files)),
      loader: "ts",
    }));
  },
});
// After the plugin: what it changes must not be loaded before.
const providers = await import("../../packages/providers/src/index.ts");
await Bun.plugin({
  name: "failpoints around the provider",
  setup(build) {
    build.module("@holdfast/providers", () => ({
      exports: { ...providers, createLocalProvider, createDockerProvider },
      loader: "object",
    }));
  },
});

function createLocalProvider(options: LocalProviderOptions): object {
  return withPoints("provider", providers.createLocalProvider(options));
}

function createDockerProvider(options: DockerProviderOptions): object {
  return withPoints("provider", providers.createDockerProvider(options));
}

function withPoints(port: string, target: object): object {
  return new Proxy(target, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name);
      if (name === "snapshots" && typeof own === "object" && own !== null) return withPoints("vault", own);
      // What it tells by itself is no step of a life.
      if (typeof own !== "function" || name === "watch") return own;
      return wrapped((args) => labelOf(`${port}.${String(name)}`, args), own.bind(target));
    },
  });
}

function wrapPrototype(port: string, prototype: object, isWanted: (name: string) => boolean): void {
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof value !== "function" || !isWanted(name)) continue;
    Object.defineProperty(prototype, name, {
      value: wrapped((args) => labelOf(`${port}.${name}`, args), value),
    });
  }
}
