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

/** What examples find in the directory that they are run in. */
export async function prepareDirectory(dir: string): Promise<void> {
  mkdirSync(join(dir, "app"));
  writeFileSync(join(dir, "app/index.js"), "");
  writeFileSync(join(dir, "model.bin"), "x".repeat(100_000));
  await run(["tar", "-czf", "app.tar.gz", "-C", "app", "."], { cwd: dir });
  await using sandbox = await freshSandbox();
  const snapshot = await sandbox.snapshot();
  await Bun.write(join(dir, "before.tar"), new Response(await snapshot.export()));
  await snapshot.delete();
}

/** The sandbox that examples use, which they all know by this name. Most leave it as good as new. */
async function freshSandbox(): Promise<Sandbox> {
  const PATH = "/workspace/bin:/usr/local/bin:/usr/bin:/bin";
  return Sandbox.getOrCreate({ name: "issue-42", network: "none", env: { PATH } });
}

/** What an example takes for granted; nothing that it does not name. */
export async function thingsFor({ code }: Example): Promise<Record<string, unknown>> {
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
  // It makes one of that name itself.
  if (code.includes("getOrCreate(")) {
    await (await freshSandbox()).delete({ force: true });
    return things;
  }
  const sbx = await freshSandbox();
  await sbx.exec(AS_NEW, { stdin: NPM });
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

/** Nothing of one example is there for the next, but for its sandbox if it has left that alone. */
export async function clearAway({ sbx }: Record<string, unknown>): Promise<void> {
  if (sbx instanceof Sandbox) await sbx.release();
  const [sandboxes, snapshots] = await Promise.all([Sandbox.list(), Snapshot.list()]);
  await Promise.all(snapshots.map((snapshot) => snapshot.delete()));
  for (const sandbox of sandboxes) {
    if (!(sbx instanceof Sandbox) || sandbox.id !== sbx.id) await sandbox.delete({ force: true });
    else if (sandbox.state === "running") await endWork(sandbox);
  }
}

async function endWork(sandbox: Sandbox): Promise<void> {
  const running = (await sandbox.listProcesses()).filter(({ status }) => status.state === "running");
  for (const { processId } of running) await (await sandbox.getProcess(processId)).kill();
}
