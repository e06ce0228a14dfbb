import type { Env, KeeperBoot } from "@holdfast/protocol";

/** Marks everything that a run starts, so that its tree can be found in /proc/PID/environ. */
export const MARKER = "HOLDFAST_COMMAND";

/** The environment of a run: the sandbox's, then each layer over it. A later one wins, `null` unsets. */
export function environmentOf(
  boot: KeeperBoot,
  run: { readonly id: string; readonly layers: readonly (Env | undefined)[] },
): Record<string, string> {
  const merged: Env = Object.assign({}, boot.env, ...run.layers);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(merged)) if (value !== null) env[name] = value;
  env.HOLDFAST_SANDBOX_ID = boot.sandboxId;
  env[MARKER] = run.id;
  return env;
}
