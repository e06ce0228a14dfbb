import { type Client, HoldfastError, type LeaseInfo, Sandbox, type Snapshot } from "holdfast";

/** What a life went through, for the timeline to explain. */
export interface Lived {
  readonly id: string;
  /** Why each of its generations ended, in order. */
  readonly deaths: readonly string[];
  /** Why the sandbox itself did. */
  readonly deleted: string;
  /** Sandboxes that were made from it, with their own lives. */
  readonly copies?: readonly Lived[];
}

interface World {
  readonly client: Client;
  readonly name: string;
  /** Kills the server between two steps of the life. */
  readonly restart: () => Promise<void>;
  /** Ends it in order, and starts the next. */
  readonly end: () => Promise<void>;
}

export interface Life {
  readonly name: string;
  /** Only points like these: the others are other lives' too. */
  readonly passes?: RegExp;
  /** What happens before the server is armed. */
  readonly before?: (world: World) => Promise<unknown>;
  /** Throws if the client is told anything that is not so, or loses what was acknowledged. */
  readonly live: (world: World) => Promise<Lived>;
}

/** What is done to snapshots, and the launch that restores one. */
export const ofCopies = /^(vault|files)\.|Snapshot|^provider\.launch$|created/;

/** A client that goes on through every death of its server, and expects to lose nothing. */
export const lives: readonly Life[] = [
  { name: "stopped, started and deleted", live: stoppedAndStarted },
  { name: "not persistent, and its turn ends", live: untilTheTurnEnds },
  { name: "idle", live: idle },
  { name: "found again by the next server", before: settled, live: foundAgain },
  { name: "copied, and made from the copy", passes: ofCopies, before: settled, live: copied },
  { name: "forked", passes: ofCopies, before: settled, live: forked },
  {
    name: "given from a spare",
    passes: /^store\.give$|^keeper\.admit$|given_up/,
    before: prepared,
    live: given,
  },
];

async function stoppedAndStarted({ client, name }: World): Promise<Lived> {
  const sandbox = await Sandbox.create({ name }, { client });
  await write(sandbox, "first");
  const background = await sandbox.startProcess("sleep 1000");
  equal("generation", (await sandbox.refresh()).generation, 1);
  equal("background process", (await background.info()).status.state, "running");
  await sandbox.stop();
  // Where a launch whose answer was lost may still arrive, the evidence takes that long.
  while ((await sandbox.refresh()).state === "stopping") await Bun.sleep(50);
  equal("state", sandbox.state, "stopped");
  await sandbox.start();
  equal("generation", (await sandbox.refresh()).generation, 2);
  await read(sandbox, "first");
  await write(sandbox, "second");
  return deleted(sandbox, ["stop_requested", "delete_requested"]);
}

async function untilTheTurnEnds({ client, name }: World): Promise<Lived> {
  const sandbox = await Sandbox.create({ name, persistent: false }, { client });
  const turn = await sandbox.beginTurn();
  await write(sandbox, "only for this turn");
  await read(sandbox, "only for this turn");
  await turn.end();
  await gone(sandbox, client);
  return { id: sandbox.id, deaths: ["turn_end"], deleted: "turn_end" };
}

async function idle({ client, name }: World): Promise<Lived> {
  const sandbox = await Sandbox.create({ name }, { client });
  await write(sandbox, "kept");
  // Only while idleness is what is wanted: a server may be away for longer.
  await sandbox.update({ lifetimeSeconds: 1 });
  while ((await sandbox.refresh()).state !== "stopped") await Bun.sleep(50);
  await sandbox.update({ lifetimeSeconds: 1800 });
  await read(sandbox, "kept");
  equal("generation", (await sandbox.refresh()).generation, 2);
  return deleted(sandbox, ["idle", "delete_requested"]);
}

async function settled({ client, name }: World): Promise<void> {
  await write(await Sandbox.create({ name }, { client }), "before");
}

async function foundAgain({ client, name, restart }: World): Promise<Lived> {
  await restart();
  const sandbox = await Sandbox.get(name, { client });
  await read(sandbox, "before");
  equal("generation", (await sandbox.refresh()).generation, 1);
  return deleted(sandbox, ["delete_requested"]);
}

async function copied({ client, name, restart }: World): Promise<Lived> {
  const sandbox = await Sandbox.get(name, { client });
  const copy = await copyOf(sandbox, `copy-of-${name}`);
  // The next one looks at what is there.
  await restart();
  const made = await Sandbox.create({ name: `${name}-again`, fromSnapshot: copy.id }, { client });
  await read(made, "before");
  await copy.delete();
  const copies = [await deleted(made, ["delete_requested"])];
  await read(sandbox, "before");
  return { ...(await deleted(sandbox, ["delete_requested"])), copies };
}

async function forked({ client, name }: World): Promise<Lived> {
  const sandbox = await Sandbox.get(name, { client });
  const forks = await sandbox.fork(2, { name: `${name}-fork` });
  equal("forks", forks.map((fork) => fork.name).join(), `${name}-fork-1,${name}-fork-2`);
  for (const fork of forks) await read(fork, "before");
  const copies = await Promise.all(forks.map((fork) => deleted(fork, ["delete_requested"])));
  return { ...(await deleted(sandbox, ["delete_requested"])), copies };
}

async function prepared({ client }: World): Promise<void> {
  const first = await Sandbox.create({}, { client });
  while ((await spares(client)).length === 0) await Bun.sleep(20);
  await first.delete();
}

async function given({ client, end }: World): Promise<Lived> {
  const [spare] = await spares(client);
  const sandbox = await Sandbox.create({ env: { TOLD: "later" } }, { client });
  equal("what was its environment", (await sandbox.exec("echo $TOLD")).stdout, "later\n");
  await write(sandbox, "mine");
  // One that is killed may have been given to nobody: then the next server finds it, and has it for the next create.
  while ((await spares(client)).length === 0) await Bun.sleep(20);
  await read(sandbox, "mine");
  equal("generation", (await sandbox.refresh()).generation, 1);
  const [next] = await spares(client);
  if (next?.sandboxId === sandbox.id) throw new Error(`${spare?.sandboxId} is a spare and a sandbox`);
  const lived = await deleted(sandbox, ["delete_requested"]);
  while ((await spares(client)).length > 0) await end();
  return lived;
}

async function spares(client: Client): Promise<LeaseInfo[]> {
  const call = { method: "GET", path: "/v1/leases", query: { limit: 1000 }, again: "safe" } as const;
  const { body } = await client.json<{ leases: LeaseInfo[] }>(call);
  return body.leases.filter(({ spare, phase }) => spare === true && phase === "live");
}

/** A server that dies while it copies says so, and has left nothing; then once more. */
async function copyOf(sandbox: Sandbox, name: string): Promise<Snapshot> {
  try {
    return await sandbox.snapshot({ name });
  } catch (error) {
    if (!String(error).includes("the server ended while it was made")) throw error;
    return sandbox.snapshot({ name });
  }
}

async function write(sandbox: Sandbox, text: string): Promise<void> {
  const { exitCode, stderr } = await sandbox.exec(`echo '${text}' > '/workspace/${text}'`);
  equal(`exit code of a command (${stderr})`, exitCode, 0);
}

async function read(sandbox: Sandbox, text: string): Promise<void> {
  const { stdout, stderr } = await sandbox.exec(["cat", `/workspace/${text}`]);
  equal(`an acknowledged file (${stderr})`, stdout, `${text}\n`);
}

async function deleted(sandbox: Sandbox, deaths: readonly string[]): Promise<Lived> {
  await sandbox.delete();
  return { id: sandbox.id, deaths, deleted: "delete_requested" };
}

async function gone(sandbox: Sandbox, client: Client): Promise<void> {
  for (;;) {
    const found = await Sandbox.get(sandbox.id, { client }).catch((error: unknown) => error);
    if (found instanceof HoldfastError && found.code === "gone") return;
    if (!(found instanceof Sandbox)) throw found;
    equal("state after its turn", found.state, "deleting");
    await Bun.sleep(20);
  }
}

function equal<T>(what: string, found: T, expected: T): void {
  if (found !== expected) throw new Error(`${what}: ${String(found)} instead of ${String(expected)}`);
}
