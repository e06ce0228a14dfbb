import { HoldfastError, Sandbox } from "holdfast";
import { z } from "zod";
import { which } from "../presence.ts";
import { tool } from "../tool.ts";

export const remove = tool({
  name: "sandbox_delete",
  title: "Delete a sandbox",
  description:
    "Deletes a sandbox with its files and everything that runs in it, and answers when it is proved gone. It cannot be " +
    "undone: take a sandbox_snapshot first if the files may be wanted. One that was deleted already is fine.",
  input: z.strictObject({
    sandbox: which.sandbox,
    force: z.boolean().default(false).describe("without the grace in which programs may end by themselves"),
  }),
  output: z.object({ sandbox: z.string(), deleted: z.boolean() }),
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ sandbox, force }, { client, signal }) {
    try {
      await (await Sandbox.get(sandbox, { client, signal })).delete({ force, signal });
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === "gone")) throw error;
    }
    return { facts: { sandbox, deleted: true }, text: `${sandbox} is gone, with its files` };
  },
});
