import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "../e2e/harness.ts";
import type { Bench } from "./bench.ts";
import { bareSpawn } from "./floors.ts";

/** A peer that nobody needs but for this comparison: fetched when it is first compared with, not by the set-up. */
const PACKAGE = "@anthropic-ai/sandbox-runtime";
const VERSION = "0.0.83";
const place = join(root, "node_modules/.cache/holdfast-bench", `${PACKAGE.replaceAll("/", "-")}-${VERSION}`);

interface SandboxManager {
  initialize(config: unknown): Promise<void>;
  wrapWithSandbox(command: string): Promise<string>;
  reset(): Promise<void>;
}

export interface SandboxRuntime extends AsyncDisposable {
  /** Runs a command in a sandbox made for it, as the package's documentation shows, and gives back what it printed. */
  run(command: string): Promise<string>;
}

/** `undefined`, with the reason told, where it cannot be had. */
export async function sandboxRuntime(bench: Bench): Promise<SandboxRuntime | undefined> {
  try {
    if (!existsSync(join(place, "node_modules", PACKAGE))) await fetchIt();
    const entry = join(place, "node_modules", PACKAGE, "dist/index.js");
    const { SandboxManager: manager } = (await import(entry)) as { SandboxManager: SandboxManager };
    await manager.initialize({
      network: { allowedDomains: [], deniedDomains: [] },
      filesystem: { denyRead: [], allowWrite: ["/tmp"], denyWrite: [] },
    });
    return {
      run: async (command) => bareSpawn(["bash", "-c", await manager.wrapWithSandbox(command)]),
      [Symbol.asyncDispose]: () => manager.reset(),
    };
  } catch (error) {
    bench.say(`  without ${PACKAGE}: ${error instanceof Error ? error.message.split("\n")[0] : error}`);
    return undefined;
  }
}

async function fetchIt(): Promise<void> {
  const quiet = ["--no-audit", "--no-fund", "--loglevel", "error"];
  await bareSpawn(["npm", "install", "--prefix", place, ...quiet, `${PACKAGE}@${VERSION}`]);
}
