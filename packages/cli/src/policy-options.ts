import { type Command, Option } from "commander";
import type { CreateSandbox, Policy, UpdateSandbox } from "holdfast";
import { parseSeconds } from "./units.ts";

export interface PolicyOptions extends EndOptions {
  persistent: boolean;
  persistAcrossRestarts: boolean;
  filesystem?: Policy["filesystem"];
}

export interface EndOptions {
  snapshotOnReap?: boolean;
  lifetime?: number;
  onIdle?: Policy["onIdle"];
  maxLifetime?: number | "none";
  turnTimeout?: number;
}

/** How a new sandbox lives and ends. */
export function addPolicyOptions(command: Command): Command {
  return addEndOptions(command, { lifetime: " (default: 30m)", turnTimeout: " (default: 1h)" })
    .option("--no-persistent", "remove it when its last turn ends")
    .option("--no-persist-across-restarts", "end what runs in it when the server ends")
    .addOption(
      new Option("--filesystem <kind>", "whether its files outlive a stop (default: persistent)").choices([
        "persistent",
        "ephemeral",
      ]),
    );
}

/** The part of it that can be changed later; then what is not named stays as it is. */
export function addEndOptions(
  command: Command,
  defaults: { lifetime: string; turnTimeout: string } = { lifetime: "", turnTimeout: "" },
): Command {
  return command
    .option(
      "--lifetime <time>",
      `how long it may be idle, such as 30m or 2h${defaults.lifetime}`,
      parseSeconds,
    )
    .addOption(
      new Option("--on-idle <what>", "then stop it (files stay), remove it, or keep it").choices([
        "stop",
        "remove",
        "keep",
      ]),
    )
    .option("--snapshot-on-reap", "copy its files before anything but your own stop or deletion takes them")
    .option("--no-snapshot-on-reap", "let them go")
    .option("--max-lifetime <time>", "a hard end after this time, whatever it does then; or none", parseEnd)
    .option(
      "--turn-timeout <time>",
      `a turn without a call for so long is over${defaults.turnTimeout}`,
      parseSeconds,
    );
}

function parseEnd(text: string): number | "none" {
  return text === "none" ? text : parseSeconds(text);
}

export function policyOf(options: PolicyOptions): Pick<CreateSandbox, keyof Policy> {
  const { filesystem } = options;
  return {
    ...(options.persistent === false && { persistent: false }),
    ...(options.persistAcrossRestarts === false && { persistAcrossRestarts: false }),
    ...(filesystem !== undefined && { filesystem }),
    ...endOf(options),
  };
}

export function endOf({
  snapshotOnReap,
  lifetime,
  onIdle,
  maxLifetime,
  turnTimeout,
}: EndOptions): UpdateSandbox {
  return {
    ...(snapshotOnReap !== undefined && { snapshotOnReap }),
    ...(lifetime !== undefined && { lifetimeSeconds: lifetime }),
    ...(onIdle !== undefined && { onIdle }),
    ...(maxLifetime !== undefined && { maxLifetimeSeconds: maxLifetime === "none" ? null : maxLifetime }),
    ...(turnTimeout !== undefined && { turnTimeoutSeconds: turnTimeout }),
  };
}

export interface QueueFlag {
  queue?: number;
}

export function addQueueOption(command: Command): Command {
  return command.option("--queue <time>", "wait so long for room if there is none now", parseSeconds);
}
