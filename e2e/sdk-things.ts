import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client, Operator, Sandbox, Snapshot } from "holdfast";
import { run } from "./harness.ts";
import type { Example } from "./sdk-examples.ts";

// There is no network to get a real one: enough of it to serve, to build and to test.
const NPM = `#!/bin/sh
[ "$1 $2" = "run dev" ] || exec echo "npm $*"
echo listening on http://localhost:3000
exec python3 -m http.server 3000
`;
/** A file, a repository, and a program called npm, as they are at the beginning of each example. */
const AS_NEW = `
find /workspace -mindepth 1 -delete; cd /workspace && echo a file | tee a.txt model.bin && mkdir app bin && cd app &&
git init -qb main && touch a && git add a && git -c user.name=x -c user.email=x@example.com commit -qm first &&
cat > ../bin/npm && chmod +x ../bin/npm`;

// What such a call leaves behind, the next example must not find.
const CHANGES_FILES = /\.(write|move|delete|mkdir|upload|writeTar|sync)\(/;
const STARTS_WORK = /startProcess|\b(server|build|repl)\b/;

/** What examples find in the directory that they are run in. */
export async function prepareDirectory(dir: string, stage: Stage): Promise<void> {
  mkdirSync(join(dir, "app"));
  writeFileSync(join(dir, "app/index.js"), "");
  writeFileSync(join(dir, "model.bin"), "x".repeat(100_000));
  await run(["tar", "-czf", "app.tar.gz", "-C", "app", "."], { cwd: dir });
  const snapshot = await (await stage.sandbox()).snapshot();
  await Bun.write(join(dir, "before.tar"), new Response(await snapshot.export()));
  await snapshot.delete();
}

/** The sandbox that examples use, which they all know by its name, and what else they take for granted. */
export class Stage {
  #sandbox: Sandbox | undefined;

  async sandbox(): Promise<Sandbox> {
    if (this.#sandbox !== undefined) return this.#sandbox;
    const PATH = "/workspace/bin:/usr/local/bin:/usr/bin:/bin";
    this.#sandbox = await Sandbox.create({ name: "issue-42", network: "none", env: { PATH } });
    await this.#sandbox.exec(AS_NEW, { stdin: NPM });
    return this.#sandbox;
  }

  /** Nothing that the example does not name. */
  async thingsFor({ code }: Example): Promise<Record<string, unknown>> {
    const isMade = (name: string) => new RegExp(`(const|using) ${name} =`).test(code);
    const uses = (name: string) => new RegExp(`(?<![.\\w"-])${name}\\b(?!\\()`).test(code) && !isMade(name);
    const things: Record<string, unknown> = {
      signal: new AbortController().signal,
      blob: new Blob(["bytes"]),
      destination: new WritableStream(),
      screen: { write: () => undefined, resize: () => undefined },
    };
    if (uses("operator")) things.operator = await Operator.connect();
    if (uses("client")) things.client = await Client.connect();
    if (makesItsOwn(code)) {
      await this.#drop();
      return things;
    }
    const sbx = await this.sandbox();
    things.sbx = sbx;
    if (uses("server")) things.server = await sbx.startProcess("npm run dev");
    if (uses("build")) things.build = await sbx.startProcess("npm run build");
    if (uses("repl")) things.repl = await sbx.startProcess("cat");
    if (uses("shell") || code.includes("getSession("))
      things.shell = await sbx.createSession({ sessionId: "main" });
    if (uses("term") || code.includes("attachTerminal(")) things.term = await sbx.terminal({ id: "main" });
    if (uses("turn")) things.turn = await sbx.beginTurn();
    if (uses("claim")) things.claim = await sbx.claim({ holder: "an example" });
    if (uses("snapshot") || code.includes("Snapshot.get("))
      things.snapshot = await sbx.snapshot({ name: "before-upgrade" });
    return things;
  }

  /** Nothing of one example is there for the next, but for the sandbox if it was left alone. */
  async clearAfter({ code }: Example): Promise<void> {
    await this.#sandbox?.release();
    const [sandboxes, snapshots] = await Promise.all([Sandbox.list(), Snapshot.list()]);
    await Promise.all(snapshots.map((snapshot) => snapshot.delete()));
    for (const sandbox of sandboxes)
      if (sandbox.id !== this.#sandbox?.id) await sandbox.delete({ force: true });
    const present = sandboxes.find(({ id }) => id === this.#sandbox?.id);
    if (present?.state !== "running") return this.#drop();
    if (STARTS_WORK.test(code)) await endWork(present);
    if (CHANGES_FILES.test(code)) await present.exec(AS_NEW, { stdin: NPM });
  }

  async #drop(): Promise<void> {
    await this.#sandbox?.delete({ force: true });
    this.#sandbox = undefined;
  }
}

function makesItsOwn(code: string): boolean {
  return code.includes("getOrCreate(");
}

async function endWork(sandbox: Sandbox): Promise<void> {
  const running = (await sandbox.listProcesses()).filter(({ status }) => status.state === "running");
  for (const { processId } of running) await (await sandbox.getProcess(processId)).kill();
}
