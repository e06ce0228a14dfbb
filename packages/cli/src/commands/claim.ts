import { hostname } from "node:os";
import type { Command } from "commander";
import type { Claim } from "holdfast";
import { addGlobalOptions, contextOf } from "../context.ts";
import { findSandbox } from "../find-sandbox.ts";
import { listenForSignals } from "../interruption.ts";
import { print, printJson } from "../print.ts";
import { parseSeconds } from "../units.ts";

interface ClaimOptions {
  holder: string;
  ttl?: number;
  takeover?: true;
  detach?: true;
}

export function define(command: Command): void {
  addGlobalOptions(command)
    .argument("<sandbox>", "its name, its id, or the beginning of its id")
    .option("--holder <who>", "what others are told who holds it", ourselves())
    .option("--ttl <time>", "it ends so long after its last renewal (default: 1m)", parseSeconds)
    .option("--takeover", "take it from whoever has it now; that is recorded")
    .option("-d, --detach", "do not stay to renew it: it ends after --ttl")
    .addHelpText("after", EXAMPLES)
    .action(claim);
}

async function claim(meant: string, options: ClaimOptions, command: Command): Promise<void> {
  const { client, output } = await contextOf(command);
  const { holder, ttl: ttlSeconds, takeover } = options;
  const interruption = listenForSignals();
  const sandbox = await findSandbox(client, meant);
  const held = await sandbox.claim({ holder, ttlSeconds, takeover });
  const { claimId, fence, token } = held;
  await (output === "json" ? printJson({ claimId, holder, fence, token }) : print(`${token}\n`));
  if (options.detach) return;
  await lostOrInterrupted(held, interruption.signal);
  await held.release();
}

/** Resolves when we are told to leave; throws why the claim is over if it ends before that. */
function lostOrInterrupted({ lost }: Claim, interrupted: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (interrupted.aborted) resolve();
    interrupted.addEventListener("abort", () => resolve(), { once: true });
    lost.addEventListener("abort", () => reject(lost.reason), { once: true });
  });
}

function ourselves(): string {
  return `${process.env.USER || `uid-${process.getuid?.()}`}@${hostname()}`;
}

const EXAMPLES = `
Examples:
  holdfast claim issue-42                 prints its token and holds it until Ctrl-C
  export HOLDFAST_CLAIM=$(holdfast claim -d --ttl 10m issue-42)
  holdfast exec issue-42 -- make deploy   with HOLDFAST_CLAIM; others are refused meanwhile
  holdfast release issue-42               gives back what HOLDFAST_CLAIM holds
  holdfast claim --takeover issue-42      from a holder that is known to be dead

Whoever works under a claim that was lost is refused, not mixed in.`;
