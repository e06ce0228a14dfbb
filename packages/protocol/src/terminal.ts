import { z } from "zod";
import { Command, KillReport } from "./execution.ts";
import { lazily } from "./lazily.ts";
import { AbsolutePath, ChosenId, Env } from "./names.ts";
import type { FromViewer } from "./terminal-socket.ts";

/** What a PTY takes is 16 bits; no screen needs more than this, and a program may allocate rows x columns. */
const MAX_SIDE = 1000;

export const TerminalSize = lazily(() =>
  z.strictObject({
    cols: z.number().int().min(1).max(MAX_SIDE),
    rows: z.number().int().min(1).max(MAX_SIDE),
  }),
);
export type TerminalSize = z.infer<typeof TerminalSize>;

export const DEFAULT_TERMINAL_SIZE: TerminalSize = { cols: 80, rows: 24 };

/**
 * Get or create. With the id of a running terminal the answer is that terminal: `command`, `cwd` and `env`, where
 * given, must be those it was made with, and a size or grace is applied to it. An ended one is never handed out: its
 * id gets a new PTY, and the answer says so.
 */
export const TerminalRequest = lazily(() =>
  z.strictObject({
    id: ChosenId.optional(),
    /** Absent: the login shell. */
    command: Command.optional(),
    cwd: AbsolutePath.optional(),
    env: Env.optional(),
    cols: TerminalSize.shape.cols.optional(),
    rows: TerminalSize.shape.rows.optional(),
    /** How long it lives with nobody attached who may write; `null`, the default, is for ever. */
    graceSeconds: z
      .number()
      .int()
      .min(0)
      .max(24 * 86_400, "at most 24 days; null is for ever")
      .nullable()
      .optional(),
  }),
);
export type TerminalRequest = z.infer<typeof TerminalRequest>;

/** `exitCode` is 128 + n after a death by signal n. `cause` says who ended it, if it was not the program itself. */
export const TerminalExit = lazily(() =>
  z.object({
    exitCode: z.number().int(),
    signal: z.string().nullable(),
    cause: z.enum(["program", "destroyed", "grace_over", "keeper_stopped"]),
    at: z.string(),
  }),
);
export type TerminalExit = z.infer<typeof TerminalExit>;

export const Terminal = lazily(() =>
  z.object({
    terminalId: z.string(),
    /** Names this PTY. An id may get another PTY later, whose offsets mean other bytes. */
    ptyId: z.string(),
    /** As seen inside the sandbox. */
    pid: z.number().int(),
    command: Command,
    cwd: z.string(),
    state: z.enum(["running", "exited"]),
    cols: z.number().int(),
    rows: z.number().int(),
    /** Everybody attached, and those of them who may write: only those hold off the grace. */
    viewers: z.number().int(),
    writers: z.number().int(),
    graceSeconds: z.number().int().nullable(),
    startedAt: z.string(),
    /** The replay buffer holds the bytes from `firstOffset` up to `nextOffset`. */
    firstOffset: z.number().int(),
    nextOffset: z.number().int(),
    exit: TerminalExit.optional(),
    /** In the answer to its destruction: how it was checked that nothing is left. */
    kill: KillReport.optional(),
  }),
);
export type Terminal = z.infer<typeof Terminal>;

/** `created` is false where a running terminal was found; `replaced` tells how the id's former program ended. */
export const TerminalCreated = lazily(() =>
  Terminal.extend({
    created: z.boolean(),
    replaced: z.object({ ptyId: z.string(), exit: TerminalExit }).optional(),
  }),
);
export type TerminalCreated = z.infer<typeof TerminalCreated>;

export const TerminalList = lazily(() => z.object({ terminals: z.array(Terminal) }));

const Flag = lazily(() => z.enum(["true", "false"]).transform((text) => text === "true"));

export const TerminalConnectQuery = lazily(() =>
  z.strictObject({
    /** Offset of the first byte wanted; absent: all that the replay buffer has. */
    since: z.coerce.number().int().min(0).optional(),
    /** The PTY that `since` belongs to; if the id has another one by now, the answer is `state_lost`. */
    ptyId: z.string().max(100).optional(),
    readonly: Flag.optional(),
    /**
     * Given, the viewer promises to send `ack` frames and never has more than this many bytes on the way: the program
     * is then paced by what was shown, not by what some buffer in between took.
     */
    window: z.coerce
      .number()
      .int()
      .min(4096)
      .max(4 * 1024 * 1024)
      .optional(),
  }),
);
export type TerminalConnectQuery = z.infer<typeof TerminalConnectQuery>;

/** What a viewer may say in a text frame. */
export const FromViewerFrame: z.ZodType<FromViewer> = lazily(() =>
  z.discriminatedUnion("type", [
    TerminalSize.extend({ type: z.literal("resize") }),
    z.strictObject({ type: z.literal("ack"), offset: z.number().int().min(0) }),
  ]),
);
