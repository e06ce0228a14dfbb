import { PortNumber } from "@holdfast/protocol";
import { HoldfastError, type Sandbox } from "holdfast";
import { z } from "zod";
import { presence, which, withSandbox } from "../presence.ts";
import { tool } from "../tool.ts";

const Exposed = z.object({
  port: z.number(),
  url: z.string().optional().describe("whoever has it can visit; absent: not exposed"),
  listening: z.boolean().optional(),
});

export const port = tool({
  name: "sandbox_port",
  title: "Preview URLs",
  description:
    "Gives what listens on a port inside, also on localhost only, an address outside (`expose`), takes it back (`close`), " +
    "or lists both exposed and listening ports (`list`). Exposing twice gives the same address.",
  input: z.strictObject({
    ...which,
    action: z.enum(["expose", "close", "list"]).default("expose"),
    port: z
      .number()
      .int()
      .min(PortNumber.minValue ?? 1)
      .max(65_535)
      .optional(),
    wake: z.boolean().optional().describe("with expose: a visit starts a stopped sandbox"),
  }),
  output: z.object({ ...presence, ports: z.array(Exposed) }),
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  run(input, call) {
    return withSandbox(call, input, async (sandbox) => {
      const ports = await act(sandbox, { ...input, signal: call.signal });
      return {
        facts: { ports },
        text: ports.map(lineOf).join("\n") || "no port is exposed, and nothing listens",
      };
    });
  },
});

interface Asked {
  readonly action: "expose" | "close" | "list";
  readonly port?: number | undefined;
  readonly wake?: boolean | undefined;
  readonly signal: AbortSignal;
}

async function act(
  { ports }: Sandbox,
  { action, port, wake, signal }: Asked,
): Promise<z.infer<typeof Exposed>[]> {
  if (action !== "list") {
    if (port === undefined)
      throw new HoldfastError("invalid_argument", `${action} needs a port`, { started: "no" });
    if (action === "close") await ports.close(port, { signal });
    else return [{ port, url: (await ports.expose(port, { wake, signal })).url }];
  }
  return (await ports.list({ signal })).map(({ port, url, listening }) => ({
    port,
    ...(url !== undefined && { url }),
    listening,
  }));
}

function lineOf({ port, url, listening }: z.infer<typeof Exposed>): string {
  const state =
    listening === undefined ? "" : listening ? " (something listens)" : " (nothing listens there now)";
  return `${port}: ${url ?? "not exposed"}${state}`;
}
