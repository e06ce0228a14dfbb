import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Env, lazily, SessionShellName } from "@holdfast/protocol";
import { z } from "zod";
import { jsonOf, readRegular } from "../engine/small-file.ts";

/** What a session is, beside the state of its shell. */
export const SessionFacts = lazily(() =>
  z.object({
    sessionId: z.string(),
    createdAt: z.number(),
    /** Of the request that made it. */
    fingerprint: z.string(),
    shell: SessionShellName,
    startCwd: z.string(),
    env: Env.optional(),
    commandTimeoutMs: z.number().int().optional(),
  }),
);
export type SessionFacts = z.infer<typeof SessionFacts>;

const Head = lazily(() =>
  z.object({
    version: z.literal(1),
    facts: SessionFacts,
    /** Where the shell was. */
    cwd: z.string(),
    savedAt: z.number(),
    /** Absent before the first command. */
    commands: z.number().int().optional(),
  }),
);

export interface Checkpoint {
  readonly facts: SessionFacts;
  readonly cwd: string;
  readonly savedAt: number;
  readonly saved: { readonly state: Buffer; readonly commands: number } | undefined;
}

const FILE = "checkpoint";
// The work inside can write here: more than this is not a shell's state, and is not read.
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Replaces the session's checkpoint, whole or not at all. It is in the page cache then, which outlives the keeper and
 * the instance; like the journal it is not synced against a power failure of the host.
 */
export function writeCheckpoint(dir: string, { facts, cwd, savedAt, saved }: Checkpoint): void {
  const head: z.infer<typeof Head> = {
    version: 1,
    facts,
    cwd,
    savedAt,
    ...(saved !== undefined && { commands: saved.commands }),
  };
  const content = [Buffer.from(`${JSON.stringify(head)}\n`), ...(saved === undefined ? [] : [saved.state])];
  const draft = join(dir, `${FILE}.new`);
  writeFileSync(draft, Buffer.concat(content), { mode: 0o600 });
  renameSync(draft, join(dir, FILE));
}

/** `undefined` if there is none, or what is there was not written by us. */
export function readCheckpoint(dir: string): Checkpoint | undefined {
  const content = readRegular(join(dir, FILE), { maxBytes: MAX_BYTES });
  const end = content?.indexOf("\n") ?? -1;
  if (content === undefined || end < 0) return undefined;
  const head = Head.safeParse(jsonOf(content.toString("utf8", 0, end)));
  if (!head.success) return undefined;
  const { facts, cwd, savedAt, commands } = head.data;
  const state = content.subarray(end + 1);
  return { facts, cwd, savedAt, saved: commands === undefined ? undefined : { state, commands } };
}
