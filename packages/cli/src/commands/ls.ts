import { type Command, Option } from "commander";
import { Sandbox, type SandboxState } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { note } from "../live.ts";
import { print, printJson } from "../print.ts";
import { reaping } from "../reaping.ts";
import type { Colour } from "../style.ts";
import { type Cell, renderTable } from "../table.ts";
import { age, parseCount } from "../units.ts";

interface LsOptions {
  state?: SandboxState;
  label?: string;
  limit?: number;
}

const stateColours: Record<SandboxState, Colour> = {
  creating: "yellow",
  running: "green",
  paused: "blue",
  stopping: "yellow",
  stopped: "grey",
  deleting: "yellow",
  failed: "red",
};

export function define(command: Command): void {
  const states = Object.keys(stateColours);
  addQuietOption(addGlobalOptions(command), "only their ids")
    .addOption(new Option("--state <state>", "only those in this state").choices(states))
    .option("-l, --label <NAME[=VALUE]>", "only those with this label")
    .option("--limit <count>", "at most so many", parseCount)
    .addHelpText("after", EXAMPLES)
    .action(ls);
}

async function ls(options: LsOptions, command: Command): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const { state, label, limit } = options;
  const sandboxes = await Sandbox.list({ client, state, label, limit });
  if (output === "json") return printJson({ sandboxes: sandboxes.map((sandbox) => sandbox.info) });
  if (quiet) return print(sandboxes.map((sandbox) => `${sandbox.id}\n`).join(""));
  if (sandboxes.length === 0 && process.stdout.isTTY)
    await note(
      (state ?? label) ? "no sandbox is like that" : "none yet; `holdfast create --name NAME` makes one",
    );
  await print(
    renderTable({
      head: ["NAME", "ID", "STATE", "GEN", "PROVIDER", "AGE", "REAPED", "NOTE"],
      rows: sandboxes.map(row),
      spare: ["GEN", "ID", "PROVIDER"],
    }),
  );
}

function row({ info }: Sandbox): (string | Cell)[] {
  const state = { text: info.state, colour: stateColours[info.state] };
  return [
    info.name,
    info.id,
    state,
    String(info.generation),
    info.provider,
    age(info.createdAt),
    reaping(info),
    noteOf(info),
  ];
}

/** Why it failed; else why it stopped, who has it for itself, and its labels. */
function noteOf({ failure, state, lastDeath, claim, labels }: Sandbox["info"]): string {
  if (failure !== undefined) return failure;
  const pairs = Object.entries(labels).map(([name, value]) => (value === "" ? name : `${name}=${value}`));
  return [
    ...(state === "stopped" && lastDeath !== undefined
      ? [`${lastDeath.cause}, ${age(lastDeath.at)} ago`]
      : []),
    ...(claim === undefined ? [] : [`claimed by ${claim.holder}`]),
    ...(pairs.length === 0 ? [] : [pairs.join(" ")]),
  ].join("; ");
}

const EXAMPLES = `
Examples:
  holdfast ls
  holdfast ls --state running --label team=web
  holdfast rm $(holdfast ls -q --state stopped)

REAPED says when it will be ended if nobody uses it until then; \`holdfast why NAME\` says the rest.`;
