import { type Argument, Command, type Option } from "commander";
import { type Client, Sandbox, Snapshot } from "holdfast";
import { buildProgram } from "./program.ts";

export interface Candidate {
  word: string;
  what?: string | undefined;
}

interface Asking {
  client: Client;
  signal: AbortSignal;
}

/** What may stand in the place of the last of these words. What the server does not say in time is left out. */
export async function candidates(words: readonly string[], asking: Asking): Promise<Candidate[]> {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? "";
  const program = await buildProgram(before.filter((word) => !word.startsWith("-")));
  const { command, operands, pending } = read(before, program);
  const all =
    pending !== undefined
      ? await valuesOf(pending, asking)
      : last.startsWith("-")
        ? command.options.filter(({ hidden }) => !hidden).map(optionWord)
        : command === program
          ? verbs(program)
          : await operandsOf(command, { operands, last, asking });
  return all.filter(({ word }) => word.startsWith(last));
}

interface Read {
  command: Command;
  /** Those of the command so far. */
  operands: string[];
  /** The option whose value comes next. */
  pending?: Option | undefined;
}

/** As the parser would, but of a line that is not finished yet. After `--` there are only operands. */
function read(words: readonly string[], program: Command): Read {
  let command = program;
  let pending: Option | undefined;
  const operands: string[] = [];
  for (const [at, word] of words.entries()) {
    if (words.slice(0, at).includes("--")) operands.push(word);
    else if (pending !== undefined) pending = undefined;
    else if (word.startsWith("-")) {
      const option = command.options.find(({ long, short }) => word === long || word === short);
      pending = option?.required ? option : undefined;
    } else if (command === program)
      command = program.commands.find((one) => one.name() === word) ?? new Command();
    else operands.push(word);
  }
  return { command, operands, pending };
}

function verbs(program: Command): Candidate[] {
  return program.commands
    .filter((command) => !command.name().startsWith("_"))
    .map((command) => ({ word: command.name(), what: command.summary() }));
}

function optionWord({ long, short, description }: Option): Candidate {
  return { word: long ?? short ?? "", what: description };
}

async function valuesOf(option: Option, asking: Asking): Promise<Candidate[]> {
  if (option.argChoices !== undefined) return option.argChoices.map((word) => ({ word }));
  return option.long === "--from-snapshot" ? snapshots(asking) : [];
}

async function operandsOf(
  command: Command,
  { operands, last, asking }: { operands: readonly string[]; last: string; asking: Asking },
): Promise<Candidate[]> {
  const all = command.registeredArguments;
  const argument = all[operands.length] ?? all.findLast(({ variadic }) => variadic);
  if (argument?.argChoices !== undefined) return argument.argChoices.map((word) => ({ word }));
  return argument === undefined ? [] : named(argument, { operands, last, asking });
}

/** By what the argument is called: what is in a sandbox, or here, only the shell and the sandbox can know. */
async function named(
  argument: Argument,
  { operands, last, asking }: { operands: readonly string[]; last: string; asking: Asking },
): Promise<Candidate[]> {
  switch (argument.name()) {
    case "sandbox":
    case "sandboxes":
    case "sandbox|ls|rm|inspect":
      return sandboxes(asking, { alsoIds: last.startsWith("sbx") });
    case "source":
    case "destination":
    case "sandbox:path":
      return (await sandboxes(asking)).map(({ word }) => ({ word: `${word}:` }));
    case "process":
    case "processes":
      return processes(operands[0] ?? "", asking);
    case "snapshot":
      return snapshots(asking);
    case "names":
      return operands[0] === "ls" ? sandboxes(asking) : snapshots(asking);
    default:
      return [];
  }
}

/** Nobody chooses by an id, unless they have begun to write one. */
function sandboxes(asking: Asking, { alsoIds } = { alsoIds: false }): Promise<Candidate[]> {
  return quietly(async () =>
    (await Sandbox.list(asking)).flatMap(({ id, info: { name, state } }) => [
      { word: name, what: state },
      ...(alsoIds ? [{ word: id, what: `${name}, ${state}` }] : []),
    ]),
  );
}

function processes(sandbox: string, asking: Asking): Promise<Candidate[]> {
  return quietly(async () =>
    (await (await Sandbox.get(sandbox, asking)).listProcesses()).map(({ processId, status }) => ({
      word: processId,
      what: status.state,
    })),
  );
}

function snapshots(asking: Asking): Promise<Candidate[]> {
  return quietly(async () => (await Snapshot.list(asking)).map(({ name }) => ({ word: name })));
}

async function quietly(ask: () => Promise<Candidate[]>): Promise<Candidate[]> {
  try {
    return await ask();
  } catch {
    return [];
  }
}
