import { sandboxStates } from "@holdfast/protocol";
import { HoldfastError, Sandbox, type SandboxEvent } from "holdfast";
import { z } from "zod";
import { shortened } from "../clean-text.ts";
import { which } from "../presence.ts";
import { ProcessBrief, processBriefOf, statusText } from "../process-brief.ts";
import { type Call, type Told, tool } from "../tool.ts";

/** Of each, the latest: what an agent that comes back needs to go on. */
const MOST = 20;

const Entry = z.object({
  at: z.string(),
  type: z.string(),
  cause: z.string().optional(),
  detail: z.string(),
});

const Answer = z.object({
  sandbox: z.string(),
  state: z.enum([...sandboxStates, "deleted"]),
  generation: z.number().optional(),
  next: z.string().describe("what will happen to it, and when"),
  alive: z.array(z.string()).describe("why it lives"),
  heldAwakeBy: z.array(z.string()),
  reapsAt: z.string().optional(),
  lastDeath: z.string().optional(),
  processes: z.array(ProcessBrief).describe("the latest; empty while it is stopped"),
  sessions: z.array(z.object({ sessionId: z.string(), state: z.string(), cwd: z.string() })),
  timeline: z.array(Entry).describe("the latest entries"),
});
type Answer = z.infer<typeof Answer>;

export const why = tool({
  name: "sandbox_why",
  title: "How is a sandbox, and why",
  description:
    "Everything to find one's way back into a sandbox: its state, why it lives, when and why it will end, why it last " +
    "ended, its processes and sessions, its latest history. Also of one that was deleted. Wakes nothing.",
  input: z.strictObject({ sandbox: which.sandbox }),
  output: Answer,
  hints: { readOnlyHint: true, openWorldHint: false },
  async run({ sandbox: name }, call) {
    try {
      return told(await living(name, call));
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === "gone")) throw error;
      return told(await deleted(name, call));
    }
  },
});

async function living(name: string, { client, signal }: Call): Promise<Answer> {
  const sandbox = await Sandbox.get(name, { client, signal });
  const answer = await sandbox.why({ signal });
  const { state, generation } = answer.sandbox;
  const { lastDeath, reapsAt, next } = answer;
  return {
    sandbox: sandbox.name,
    ...{ state, generation, next },
    alive: fewShort(answer.alive),
    heldAwakeBy: fewShort(answer.heldAwakeBy),
    ...(reapsAt !== undefined && { reapsAt }),
    ...(lastDeath !== undefined && { lastDeath: shortened(`${lastDeath.cause}: ${lastDeath.detail}`, 300) }),
    ...(await inside(sandbox)),
    timeline: await timelineOf((since) => sandbox.events({ since, signal })),
  };
}

/** A process's command line may be in them. */
function fewShort(reasons: readonly string[]): string[] {
  return reasons.slice(0, MOST).map((reason) => shortened(reason, 300));
}

/** Of one that does not run, or no longer, nothing is known: only looking never starts it. */
async function inside(sandbox: Sandbox): Promise<Pick<Answer, "processes" | "sessions">> {
  const lists = await Promise.all([sandbox.listProcesses(), sandbox.listSessions()]).catch(
    (error: unknown) => {
      if (error instanceof HoldfastError && error.code === "wrong_state") return [[], []] as const;
      throw error;
    },
  );
  const [processes, sessions] = lists;
  return {
    processes: processes.slice(-MOST).map(processBriefOf),
    sessions: sessions
      .slice(-MOST)
      .map(({ sessionId, state, cwd }) => ({ sessionId, state, cwd: shortened(cwd, 300) })),
  };
}

async function deleted(name: string, { client, signal }: Call): Promise<Answer> {
  const timeline = await timelineOf((since) => Sandbox.events(name, { client, since, signal }));
  const next = "nothing: it was deleted; sandbox_create makes another";
  return {
    sandbox: name,
    state: "deleted",
    next,
    alive: [],
    heldAwakeBy: [],
    processes: [],
    sessions: [],
    timeline,
  };
}

/** The server gives the oldest first, in pages. */
async function timelineOf(read: (since: number) => Promise<SandboxEvent[]>): Promise<Answer["timeline"]> {
  let latest: SandboxEvent[] = [];
  for (let page = await read(0); page.length > 0; page = await read(page.at(-1)?.seq ?? 0))
    latest = [...latest, ...page].slice(-MOST);
  return latest.map(({ at, type, cause, detail }) => ({
    at,
    type,
    ...(cause !== undefined && { cause }),
    detail: shortened(JSON.stringify(detail), 300),
  }));
}

function told(facts: Answer): Told<Answer> {
  const { sandbox, state, generation, next, alive, lastDeath, processes, sessions, timeline } = facts;
  const lines = [
    `${sandbox}: ${state}${generation === undefined ? "" : `, generation ${generation}`}`,
    `next: ${next}`,
    ...alive.map((reason) => `alive: ${reason}`),
    ...(lastDeath === undefined ? [] : [`last ended: ${lastDeath}`]),
    ...processes.map((one) => `process ${one.processId}: ${statusText(one)} (${one.command})`),
    ...sessions.map((one) => `session ${one.sessionId}: ${one.state}, in ${one.cwd}`),
    ...timeline
      .slice(-5)
      .map(({ at, type, cause }) => `${at} ${type}${cause === undefined ? "" : ` (${cause})`}`),
  ];
  return { facts, text: lines.join("\n") };
}
