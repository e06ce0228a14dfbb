import { CreateSnapshot } from "@holdfast/protocol";
import type { Snapshot } from "holdfast";
import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

const { name, expiresInSeconds } = CreateSnapshot.shape;

const SnapshotBrief = z.object({
  snapshotId: z.string(),
  name: z.string(),
  state: z.string(),
  sizeBytes: z.number(),
  files: z.number(),
  createdAt: z.string(),
  expiresAt: z.string().optional(),
});

export const snapshot = tool({
  name: "sandbox_snapshot",
  title: "Snapshot the files",
  description:
    "Copies a sandbox's files (/workspace and home, not its processes) as of one moment, before something risky; or " +
    "lists those that were taken. To go back, or to try two ways: sandbox_create with `fromSnapshot`.",
  input: z.strictObject({
    ...which,
    action: z.enum(["take", "list"]).default("take"),
    name: name.describe("a-z, 0-9 and -"),
    expiresInSeconds: expiresInSeconds.describe("removed by itself after this; default: kept"),
  }),
  output: z.object({ ...presence, snapshots: z.array(SnapshotBrief) }),
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  run(input, call) {
    const { action, name, expiresInSeconds } = input;
    const { signal } = call;
    const onProgress = (copied: number) => call.progress(`${copied} bytes copied`);
    return withSandbox(call, input, async (sandbox) => {
      const found =
        action === "list"
          ? await sandbox.snapshots({ signal })
          : [await sandbox.snapshot({ name, expiresInSeconds, onProgress, signal })];
      const snapshots = found.map(briefOf);
      return { facts: { snapshots }, text: snapshots.map(lineOf).join("\n") || "none was taken" };
    });
  },
});

function briefOf({ info }: Snapshot): z.infer<typeof SnapshotBrief> {
  const { snapshotId, name, state, sizeBytes, files, createdAt, expiresAt } = info;
  return {
    snapshotId,
    name,
    state,
    sizeBytes,
    files,
    createdAt,
    ...(expiresAt !== undefined && { expiresAt }),
  };
}

function lineOf({ snapshotId, name, state, sizeBytes, files }: z.infer<typeof SnapshotBrief>): string {
  return `${name} (${snapshotId}): ${state}, ${files} files, ${sizeBytes} bytes`;
}
