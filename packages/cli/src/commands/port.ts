import type { Command } from "commander";
import type { SandboxPortInfo } from "holdfast";
import { addGlobalOptions, addQuietOption, contextOf } from "../context.ts";
import { UsageError } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";
import { print, printJson } from "../print.ts";
import { type Cell, renderTable } from "../table.ts";
import { age, parseCount } from "../units.ts";

interface PortOptions {
  wake?: true;
  public?: true;
  close?: true;
}

export function define(command: Command): void {
  addQuietOption(addGlobalOptions(command), "only the addresses")
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .argument("[port]", "the port that a program inside listens on, or will", parseCount)
    .option("--wake", "a visit starts the sandbox if it is stopped")
    .option("--public", "no token in the address: it can be guessed from the sandbox's id")
    .option("--close", "take the address back, and cut its connections")
    .addHelpText("after", EXAMPLES)
    .action(port);
}

async function port(
  meant: string,
  number: number | undefined,
  options: PortOptions,
  command: Command,
): Promise<void> {
  const { client, output, quiet } = await contextOf(command);
  const isListing = Object.keys(options).every((name) => !["wake", "public", "close"].includes(name));
  if (number === undefined && !isListing)
    throw new UsageError("which port?", "Name it after the sandbox: holdfast port SANDBOX 3000");
  const { ports } = await findSandbox(client, meant);
  if (number === undefined) {
    const found = await ports.list();
    if (output === "json") return printJson({ ports: found });
    return print(
      quiet ? found.flatMap(({ url }) => (url === undefined ? [] : `${url}\n`)).join("") : tableOf(found),
    );
  }
  if (options.close) return ports.close(number);
  const exposed = await ports.expose(number, { wake: options.wake, public: options.public });
  await (output === "json" ? printJson(exposed) : print(`${exposed.url}\n`));
}

function tableOf(ports: SandboxPortInfo[]): string {
  return renderTable({ head: ["PORT", "LISTENING", "AGE", "URL"], rows: ports.map(row), spare: ["AGE"] });
}

function row({ port, listening, createdAt, url = "-" }: SandboxPortInfo): (string | Cell)[] {
  const state: Cell = listening ? { text: "yes", colour: "green" } : { text: "no", colour: "grey" };
  return [String(port), state, age(createdAt), url];
}

const EXAMPLES = `
Examples:
  holdfast port issue-42 3000            prints an address for what listens on port 3000 inside
  holdfast port issue-42                 lists addresses, and what listens without one
  holdfast port --wake issue-42 3000     the same address; a visit starts the sandbox from now on
  holdfast port --close issue-42 3000    whoever had the address has it no longer

The address is the key: whoever has it can visit, nobody else can.`;
