/**
 * Loaded into a server before its own code (`bun --preload`): wraps the ports through which it reaches its store, its
 * provider and its keepers, so that it can be killed right before or right after any call. The product knows nothing
 * of it.
 *
 * In the folder that HOLDFAST_FAILPOINTS names, every call is added to `trace` as one line, if that file exists; and if
 * there is a file `armed` with a point such as `store.save(live):2:after`, the second such call from that moment on is
 * the server's last act. The file is removed first, so that the next server lives.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { KeeperLink } from "../../packages/keeper-link/src/index.ts";
import * as providers from "../../packages/providers/src/index.ts";
import { SqliteStore } from "../../packages/store/src/index.ts";
import { labelOf } from "./label.ts";
import { parsePoint, type Side } from "./point.ts";

type Method = (...args: unknown[]) => unknown;

const folder = process.env.HOLDFAST_FAILPOINTS ?? "";
const armedFile = join(folder, "armed");
const traceFile = join(folder, "trace");
let armed = "";
let calls = 0;

/** What the lifecycle says to a keeper; the rest is what commands do, and no part of a lease. */
const CONTROL = ["info", "admit", "watch", "quiesce", "resume", "touch", "claimFence"];

wrapPrototype("store", Object.getPrototypeOf(SqliteStore.prototype), (name) => name !== "constructor");
wrapPrototype("keeper", KeeperLink.prototype, (name) => CONTROL.includes(name));
await Bun.plugin({
  name: "failpoints around the provider",
  setup(build) {
    build.module("@holdfast/providers", () => ({
      exports: { ...providers, createLocalProvider, createDockerProvider },
      loader: "object",
    }));
  },
});

function createLocalProvider(options: providers.LocalProviderOptions): object {
  return withPoints(providers.createLocalProvider(options));
}

function createDockerProvider(options: providers.DockerProviderOptions): object {
  return withPoints(providers.createDockerProvider(options));
}

function withPoints(provider: object): object {
  return new Proxy(provider, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name);
      // What it tells by itself is no step of a life.
      if (typeof own !== "function" || name === "watch") return own;
      return wrapped(`provider.${String(name)}`, own.bind(target));
    },
  });
}

function wrapPrototype(port: string, prototype: object, isWanted: (name: string) => boolean): void {
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof value !== "function" || !isWanted(name)) continue;
    Object.defineProperty(prototype, name, { value: wrapped(`${port}.${name}`, value) });
  }
}

function wrapped(name: string, method: Method): Method {
  return async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    const label = labelOf(name, args);
    if (existsSync(traceFile)) appendFileSync(traceFile, `${label}\n`);
    const last = isLast(label);
    if (last === "before") die();
    const result = await method.apply(this, args);
    if (last === "after") die();
    return result;
  };
}

/** Whether this very call is the one that was armed, and on which side of it the end is. */
function isLast(label: string): Side | undefined {
  const text = existsSync(armedFile) ? readFileSync(armedFile, "utf8") : "";
  if (text !== armed) [armed, calls] = [text, 0];
  if (text === "") return undefined;
  const point = parsePoint(text);
  if (point.label !== label || ++calls !== point.occurrence) return undefined;
  return point.side;
}

function die(): never {
  rmSync(armedFile);
  process.kill(process.pid, "SIGKILL");
  throw new Error("the kernel did not end this process");
}
