import type { Command } from "commander";
import {
  HoldfastError,
  type InstanceInfo,
  Sandbox,
  type SandboxEvent,
  type TurnInfo,
  type Why,
} from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { type Fact, future, past, renderFacts } from "../facts.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";
import { becomes } from "../reaping.ts";
import { span } from "../units.ts";

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .addHelpText("after", EXAMPLES)
    .action(why);
}

async function why(meant: string, _options: object, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  try {
    const answer = await (await findSandbox(client, meant)).why();
    await (output === "json" ? printJson(answer) : print(render(answer)));
  } catch (error) {
    const isGone = error instanceof HoldfastError && error.code === "gone";
    if (!isGone || output === "json") throw error;
    await print(renderGone(meant, await Sandbox.events(meant, { client })));
  }
}

/** The timeline outlives it, and has the cause. */
function renderGone(meant: string, timeline: readonly SandboxEvent[]): string {
  const deleted = timeline.findLast(({ type }) => type === "deleted");
  const evidence = timeline.findLast(({ type }) => type === "gone")?.detail.what;
  return renderFacts([
    ["sandbox", `${meant}: deleted${deleted === undefined ? "" : ` ${past(deleted.at)}`}`],
    ["because", deleted?.cause],
    ["evidence", typeof evidence === "string" ? evidence : undefined],
    ["next", "nothing: `holdfast events` has its timeline, for a while"],
  ]);
}

/** What happens next comes first: it is what one asks for. */
function render(answer: Why): string {
  const { sandbox, claim, lastDeath, idleForSeconds } = answer;
  const facts: Fact[] = [
    ["sandbox", `${sandbox.name} (${sandbox.id}): ${sandbox.state}, generation ${sandbox.generation}`],
    ["next", answer.next],
    ...answer.alive.map((reason): Fact => ["alive", reason]),
    ...answer.heldAwakeBy.map((reason): Fact => ["held awake", reason]),
    ["idle", idleForSeconds === undefined ? undefined : `for ${span(idleForSeconds * 1000)}`],
    [
      "reaped",
      answer.reapsAt && `${becomes[answer.onIdle]} ${future(answer.reapsAt)}, unless it is used until then`,
    ],
    ["hard end", future(answer.endsAt)],
    ...answer.openTurns.map((turn): Fact => ["open turn", turnText(turn)]),
    ["claim", claim && `${claim.holder}, until ${future(claim.expiresAt)}`],
    ["instance", answer.instance && instanceText(answer.instance)],
    ...answer.debts.map((debt): Fact => ["still hunted", instanceText(debt)]),
    ["last death", lastDeath && `${lastDeath.cause}, ${past(lastDeath.at)}: ${lastDeath.detail}`],
    ["failure", answer.failure],
  ];
  return renderFacts(facts);
}

function turnText({ turnId, startedAt, expiresAt }: TurnInfo): string {
  const ends = expiresAt === undefined ? "" : `; ends by itself ${future(expiresAt)}`;
  return `${turnId}, since ${past(startedAt)}${ends}`;
}

function instanceText(instance: InstanceInfo): string {
  const { phase, provider, generation, instanceId, since, attempts, nextAttemptAt, lastError } = instance;
  const stops = attempts === 0 ? "" : `; ${attempts} attempts to stop it`;
  const next = nextAttemptAt === undefined ? "" : `; next look ${future(nextAttemptAt)}`;
  const error = lastError === undefined ? "" : `; ${lastError}`;
  return `${phase} on ${provider}, generation ${generation} (${instanceId}), since ${past(since)}${stops}${next}${error}`;
}

const EXAMPLES = `
Examples:
  holdfast why issue-42             what holds it awake, when it is reaped, why it last died
  holdfast why issue-42 -o json

Of one that was deleted it says when, why, and how that was proved.

A look: it wakes nothing and holds nothing off. \`holdfast events\` has what happened before.`;
