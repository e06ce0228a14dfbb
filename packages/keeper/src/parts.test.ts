import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KeeperBoot } from "@holdfast/protocol";
import { Engine } from "./engine/engine.ts";
import { execRoutes } from "./exec/exec-routes.ts";
import { allFilesRoutes } from "./files/routes.ts";
import { gitRoutes } from "./git/routes.ts";
import type { Routes } from "./http/guard.ts";
import { Gate } from "./lifecycle/gate.ts";
import { Part } from "./part.ts";
import { loadWhatHasLeftovers, makeParts, partRoutes } from "./parts.ts";
import { portRoutes } from "./ports/routes.ts";
import { processRoutes } from "./process/process-routes.ts";
import { sessionRoutes } from "./session/session-routes.ts";
import { terminalRoutes } from "./terminal/routes.ts";
import { usageRoutes } from "./usage/routes.ts";
import { watchRoutes } from "./watch/routes.ts";

let stateDir: string;
let engine: Engine;

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "holdfast-parts-"));
  engine = new Engine({ stateDir, cwd: stateDir, env: {} } as unknown as KeeperBoot);
});

afterEach(() => {
  engine.close();
  rmSync(stateDir, { recursive: true });
});

test("every path and method of every part is answered to before the part is loaded", async () => {
  const parts = makeParts(engine);
  const gate = new Gate({ elapsed: () => 0, use: engine.use });
  const ahead = partRoutes({ engine, gate, parts });
  const all = {
    ...execRoutes(engine),
    ...processRoutes(engine),
    ...allFilesRoutes(engine),
    ...gitRoutes(engine),
    ...portRoutes({ gate, use: engine.use }),
    ...sessionRoutes(engine, await parts.sessions.get()),
    ...terminalRoutes(await parts.terminals.get()),
    ...usageRoutes({ engine, ...parts }),
    ...watchRoutes(await parts.fileWatches.get()),
  };
  expect(namesOf(ahead)).toEqual(namesOf(all));
});

test.each([
  { left: [], loaded: [] },
  { left: ["sessions"], loaded: ["sessions"] },
  { left: ["files", "clones"], loaded: ["files", "git"] },
])("after a keeper that left $left, $loaded are loaded at the start", async ({ left, loaded }) => {
  for (const dir of left) mkdirSync(join(stateDir, dir));
  const parts = makeParts(engine);
  await loadWhatHasLeftovers(engine, parts);
  const found = Object.entries(parts).filter(([, part]) => part.loaded !== undefined);
  expect(found.map(([name]) => name)).toEqual([...loaded]);
});

test("whoever needs a part gets the same one, and one that could not be loaded is tried again", async () => {
  let loads = 0;
  const part = new Part(async () => {
    loads += 1;
    if (loads === 1) throw new Error("no descriptors left");
    return { number: loads };
  });
  await expect(part.get()).rejects.toThrow("no descriptors left");
  const [one, other] = await Promise.all([part.get(), part.get()]);
  expect([one, other === one, part.loaded === one, loads]).toEqual([{ number: 2 }, true, true, 2]);
});

function namesOf(routes: Routes): string[] {
  const names = Object.entries(routes).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  return names.sort();
}
