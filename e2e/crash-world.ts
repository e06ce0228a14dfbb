import { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError, Sandbox, type SandboxEvent } from "holdfast";
import type { Told } from "./crash-clients.ts";
import type { TestServer } from "./harness.ts";

/** Everything in the world that contradicts what clients were told, or that nobody accounts for. One line each. */
export async function contradictions(server: TestServer, told: readonly Told[]): Promise<string[]> {
  const known = await Sandbox.list(server.at);
  const expected = told.filter(({ deleted }) => deleted === undefined).map(({ id }) => id ?? "");
  return [
    ...mismatches("sandbox", expected, ids(known)),
    ...(await Promise.all(told.map((one) => contradictionsOf(one, server)))).flat(),
    // After each was used: all of them run now.
    ...leftovers(server, ids(await Sandbox.list(server.at))),
  ];
}

/** Nothing but what the sandboxes with these ids need: no process, directory, control group or user id. */
export function leftovers(server: TestServer, alive: readonly string[]): string[] {
  const { dataDir } = server;
  const ever = everSeen(dataDir);
  // A control group's name also says whose data dir it is of.
  const idOf = (name: string) => /^hf-(.+)-g\d+(:.*)?$/.exec(name)?.[1] ?? name;
  const uids = readdirSync(join(dataDir, "uids")).map((uid) =>
    readFileSync(join(dataDir, "uids", uid), "utf8"),
  );
  return [
    ...mismatches("disk", alive, readdirSync(join(dataDir, "sandboxes"))),
    ...mismatches("instance", alive, readdirSync(join(dataDir, "instances")).map(idOf)),
    ...(process.getuid?.() === 0 ? mismatches("user id", alive, uids) : []),
    ...mismatches(
      "keeper",
      alive,
      keepers().filter((id) => ever.has(id)),
    ),
    ...named(ever).filter((line) => !alive.some((id) => line.includes(id))),
    ...groups().filter(
      (path) => ever.has(idOf(path.split("/").at(-1) ?? "")) && !alive.some((id) => path.includes(id)),
    ),
    ...readdirSync(join(dataDir, "keepers"))
      .slice(1)
      .map((bundle) => `bundle too many: ${bundle}`),
  ];
}

async function contradictionsOf(told: Told, server: TestServer): Promise<string[]> {
  const { id = "", name, deleted } = told;
  const found = await Sandbox.get(id, server.at).catch((error: unknown) => error);
  if (deleted !== undefined) {
    const isGone = found instanceof HoldfastError && found.code === "gone";
    return isGone ? [] : [`${name}: its deletion was acknowledged, and now: ${found}`];
  }
  if (!(found instanceof Sandbox)) return [`${name}: ${found}`];
  const { stdout } = await found.exec("touch /workspace/lines; cat /workspace/lines");
  const lines = stdout.split("\n").filter(Boolean);
  const optional = lines.filter((line) => told.perhaps.includes(line));
  return [
    ...mismatches(`${name}: line`, [...told.written, ...new Set(optional)], lines),
    ...oddities(await found.events()).map((oddity) => `${name}: ${oddity}`),
  ];
}

/** Of a timeline: generations grow, each begins once, and each but the last has ended, once. */
function oddities(events: readonly SandboxEvent[]): string[] {
  const of = (type: string) =>
    events.filter((event) => event.type === type).map(({ detail }) => Number(detail.generation));
  const launched = of("launching");
  const counted = launched.map((_, i) => i + 1);
  const before = new Map(
    launched.map((generation) => [
      generation,
      events.findIndex((event) => event.type === "launching" && event.detail.generation === generation),
    ]),
  );
  const early = events.filter(
    ({ type, detail }, at) =>
      ["live", "gone"].includes(type) &&
      at < (before.get(Number(detail.generation)) ?? Number.POSITIVE_INFINITY),
  );
  return [
    ...mismatches("generation", counted, launched),
    ...mismatches("end of generation", counted.slice(0, -1), of("gone")),
    ...(new Set(of("live")).size === of("live").length ? [] : [`live twice: ${of("live")}`]),
    ...early.map(({ type, detail }) => `${type} before it was launched: ${detail.generation}`),
  ];
}

/** What is not on both lists, and what is on one of them twice. */
function mismatches<T>(what: string, expected: readonly T[], found: readonly T[]): string[] {
  const count = (list: readonly T[], item: T) => list.filter((other) => other === item).length;
  return [...new Set([...expected, ...found])]
    .filter((item) => count(expected, item) !== count(found, item))
    .map((item) => `${what} ${item}: expected ${count(expected, item)}, found ${count(found, item)}`);
}

function ids(sandboxes: readonly Sandbox[]): string[] {
  return sandboxes.map(({ id }) => id);
}

/** Every sandbox that there ever was, also those that no client heard of: the timeline outlives them. */
export function everSeen(dataDir: string): Set<string> {
  const db = new Database(join(dataDir, "holdfast.db"), { readonly: true });
  try {
    const rows = db.query<{ id: string }, []>("SELECT DISTINCT sandbox_id AS id FROM timeline").all();
    return new Set(rows.map(({ id }) => id));
  } finally {
    db.close();
  }
}

/** The sandbox of each keeper on this host. */
export function keepers(): string[] {
  const all = processes().filter(
    ({ pid, argv }) => argv[0]?.startsWith("/.holdfast/") && isFirstInNamespace(pid),
  );
  return all.map(({ argv }) => /^hf-(.+)-(?:g\d+|disk-\w+)$/.exec(argv.at(-1) ?? "")?.[1] ?? "");
}

function named(sandboxes: ReadonlySet<string>): string[] {
  return processes()
    .map(({ pid, argv }) => `process ${pid}: ${argv.join(" ").slice(0, 300)}`)
    .filter((line) => [...sandboxes].some((id) => line.includes(`hf-${id}-g`)));
}

function processes(): { pid: string; argv: string[] }[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map((pid) => ({ pid, argv: readOrNothing(`/proc/${pid}/cmdline`).split("\0").slice(0, -1) }));
}

function isFirstInNamespace(pid: string): boolean {
  return /^NSpid:.*\t1$/m.test(readOrNothing(`/proc/${pid}/status`));
}

function groups(): string[] {
  const found = [...new Bun.Glob("*/holdfast/*").scanSync({ cwd: "/sys/fs/cgroup", onlyFiles: false })];
  return [...found, ...new Bun.Glob("holdfast/*").scanSync({ cwd: "/sys/fs/cgroup", onlyFiles: false })];
}

/** Of processes: one that ended while we looked is not there. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
