import { z } from "zod";
import { Env } from "./names.ts";

/**
 * What the keeper serves on its unix socket, beside the execution routes, which are those of the public API without
 * the sandbox's prefix (`/v1/exec`, `/v1/commands/…`, `/v1/processes/…`). Every request carries the instance's secret
 * as a bearer token and the caller's fence.
 */
export const FENCE_HEADER = "Holdfast-Fence";

/** Read by the keeper from a file descriptor when it starts, so that it is in no argument and no environment. */
export const KeeperBoot = z.strictObject({
  secret: z.string().min(32),
  sandboxId: z.string(),
  instanceId: z.string(),
  generation: z.number().int(),
  socketPath: z.string(),
  stateDir: z.string(),
  /** The first layer of every command's environment: PATH, HOME, USER, LANG, then the sandbox's own. */
  env: Env,
  cwd: z.string(),
  /** How many processes and threads there may be when the work starts another; the keeper itself may have a few more. */
  maxProcesses: z.number().int().positive().optional(),
  /** Where the memory controller's counters can be read inside, if anywhere. */
  memoryCgroupDir: z.string().optional(),
});
export type KeeperBoot = z.infer<typeof KeeperBoot>;

/** The gate: the keeper runs nothing until the server has re-read the lease and said this. May be said again. */
export const AdmitRequest = z.strictObject({
  instanceId: z.string(),
  generation: z.number().int(),
  fence: z.number().int(),
});
export type AdmitRequest = z.infer<typeof AdmitRequest>;

export const KeeperInfo = z.object({
  protocolVersion: z.string(),
  sandboxId: z.string(),
  instanceId: z.string(),
  generation: z.number().int(),
  admitted: z.boolean(),
  fence: z.number().int(),
  shell: z.enum(["bash", "sh", "none"]),
  startedAt: z.string(),
  commandsRunning: z.number().int(),
  processesRunning: z.number().int(),
});
export type KeeperInfo = z.infer<typeof KeeperInfo>;
