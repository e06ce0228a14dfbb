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
  const [answer, events] = await Promise.all([sandbox.why({ signal }), sandbox.events({ signal })]);
  const { state, generation } = answer.sandbox;
  const { lastDeath, reapsAt, next, alive, heldAwakeBy } = answer;
  return {
    sandbox: sandbox.name,
    ...{ state, generation, next, alive, heldAwakeBy },
    ...(reapsAt !== undefined && { reapsAt }),
    ...(lastDeath !== undefined && { lastDeath: shortened(`${lastDeath.cause}: ${lastDeath.detail}`, 300) }),
    ...(state === "running" ? await inside(sandbox) : { processes: [], sessions: [] }),
    timeline: timelineOf(events),
  };
}

async function inside(sandbox: Sandbox): Promise<Pick<Answer, "processes" | "sessions">> {
  const [processes, sessions] = await Promise.all([sandbox.listProcesses(), sandbox.listSessions()]);
  return {
    processes: processes.slice(-MOST).map(processBriefOf),
    sessions: sessions
      .slice(-MOST)
      .map(({ sessionId, state, cwd }) => ({ sessionId, state, cwd: shortened(cwd, 300) })),
  };
}

async function deleted(name: string, { client, signal }: Call): Promise<Answer> {
  const timeline = timelineOf(await Sandbox.events(name, { client, signal }));
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

function timelineOf(events: readonly SandboxEvent[]): Answer["timeline"] {
  return events.slice(-MOST).map(({ at, type, cause, detail }) => ({
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
