import { Database } from "bun:sqlite";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Sandbox, type SandboxEvent } from "holdfast";
import { keepers, leftovers } from "../crash-world.ts";
import type { Lived } from "./lives.ts";
import type { Victim } from "./victim.ts";

/** What is released after the last answer was sent: a ticket, a control group. */
const PATIENCE_MS = 3_000;

/** Everything that is wrong with the world after a life that is over. One line each. */
export async function aftermath(victim: Victim, lived: Lived): Promise<string[]> {
  const { server, client } = victim;
  const over = performance.now() + PATIENCE_MS;
  const all = [lived, ...(lived.copies ?? [])];
  const look = async () => {
    const left = await Promise.all(all.map((one) => leftOf(victim, one)));
    return [...new Set(left.flat()), ...copiesLeft(victim), ...unsettled(server.dataDir)];
  };
  let wrong = await look();
  while (wrong.length > 0 && performance.now() < over) {
    await Bun.sleep(50);
    wrong = await look();
  }
  const stories = await Promise.all(
    all.map(async (one) => unexplained(await Sandbox.events(one.id, { client }), one)),
  );
  return [...wrong, ...stories.flat()];
}

/** Copies of disks, whole or half made; and disks that are half made. */
function copiesLeft({ server, daemon }: Victim): string[] {
  const home = daemon === undefined ? server.dataDir : join(server.dataDir, "docker");
  return [
    ...readdirSync(join(home, "snapshots")).map((name) => `snapshots/${name}`),
    ...readdirSync(join(home, "sandboxes"))
      .filter((name) => name.startsWith("."))
      .map((name) => `sandboxes/${name}`),
  ];
}

/** On a daemon that several servers share: what is of this sandbox. Its name is in the name of each thing. */
async function leftOf({ server, daemon }: Victim, { id }: Lived): Promise<string[]> {
  if (daemon === undefined) return leftovers(server, []);
  const containers = (await daemon.ask("GET", "/containers/json?all=1")) as { Names: string[] }[];
  const { Volumes } = (await daemon.ask("GET", "/volumes")) as { Volumes: { Name: string }[] | null };
  const found = [
    ...containers.flatMap(({ Names }) => Names).map((name) => `container ${name}`),
    ...(Volumes ?? []).map(({ Name }) => `volume ${Name}`),
    ...keepers().map((keeper) => `keeper ${keeper}`),
    ...["instances", "sandboxes"].flatMap((dir) =>
      readdirSync(join(server.dataDir, "docker", dir)).map((name) => `${dir}/${name}`),
    ),
  ];
  return found.filter((name) => name.includes(id));
}

/** Rows that somebody would still have to do something about. */
function unsettled(dataDir: string): string[] {
  const db = new Database(join(dataDir, "holdfast.db"), { readonly: true });
  const rows = (what: string, sql: string) =>
    db
      .query<{ id: string }, []>(sql)
      .all()
      .map(({ id }) => `${what}: ${id}`);
  try {
    return [
      ...rows("a sandbox that was deleted", "SELECT id FROM sandbox"),
      ...rows("a snapshot that nobody wants", "SELECT id FROM snapshot"),
      ...rows("a lease without evidence", "SELECT instance_id AS id FROM instance WHERE phase <> 'gone'"),
      ...rows("due although nothing is left", "SELECT sandbox_id AS id FROM work WHERE due_at IS NOT NULL"),
      ...rows(
        "a ticket that nobody gave back",
        "SELECT sandbox_id AS id FROM work WHERE ticket_until IS NOT NULL",
      ),
    ];
  } finally {
    db.close();
  }
}

/** Each generation begins once, runs once and ends once, for the reason that it had; then the sandbox does. */
function unexplained(events: readonly SandboxEvent[], { deaths, deleted }: Lived): string[] {
  const told = events
    .filter(({ type }) => ["created", "launching", "live", "gone", "deleted"].includes(type))
    // What was a spare is launched before it is created.
    .sort((a, b) => Number(b.type === "created") - Number(a.type === "created"));
  const story = told.map(({ type, cause, detail }) =>
    [type, detail.generation, cause, detail.evidence].filter((fact) => fact !== undefined).join(" "),
  );
  const expected = [
    "created",
    ...deaths.flatMap((cause, i) => [`launching ${i + 1}`, `live ${i + 1}`, `gone ${i + 1} ${cause} exited`]),
    `deleted ${deleted}`,
  ];
  if (story.join() === expected.join()) return [];
  return [`the timeline tells: ${story.join(", ")}; instead of: ${expected.join(", ")}`];
}
