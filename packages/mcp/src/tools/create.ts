import { CreateSandbox, Limits } from "@holdfast/protocol";
import { HoldfastError, Sandbox, type SandboxEvent } from "holdfast";
import { z } from "zod";
import { shortened } from "../clean-text.ts";
import { briefLine, briefOf, SandboxBrief } from "../sandbox-brief.ts";
import { type Call, tool } from "../tool.ts";

const { name, image, env, labels, lifetimeSeconds, maxLifetimeSeconds, provider, fromSnapshot, user } =
  CreateSandbox.shape;
const { cpus, memoryMiB, pids, diskMiB } = Limits.shape;

export const create = tool({
  name: "sandbox_create",
  title: "Get or create a sandbox",
  description:
    "Makes an isolated Linux sandbox and waits until a command would run. With a name it takes the one that exists, so " +
    "use a name that you will know again (such as the task's). Files under /workspace and the home directory stay; an " +
    "idle sandbox is stopped after lifetimeSeconds and comes back by itself with the next use.",
  input: z.strictObject({
    name: name.describe("a-z, 0-9 and -; without it, a new sandbox with a name of its own"),
    image: image.describe("a container image, on providers that have images"),
    network: z
      .enum(["none", "full"])
      .optional()
      .describe("full reaches out, never the host's loopback; default: the provider's"),
    env: env.describe("for everything that runs in it"),
    limits: z.strictObject({ cpus, memoryMiB, pids, diskMiB }).optional(),
    lifetimeSeconds: lifetimeSeconds.describe("idle time after which onIdle happens; default: 1800"),
    onIdle: z.enum(["stop", "remove", "keep"]).optional().describe("default: stop, which keeps the files"),
    maxLifetimeSeconds: maxLifetimeSeconds.describe("a hard end, whatever it does then"),
    fromSnapshot: fromSnapshot.describe("id or name of a snapshot that its files begin with"),
    provider: provider.describe("local, docker, …; default: the server's choice"),
    user: user.describe("who the work runs as, on providers with images"),
    labels,
  }),
  output: z.object({ created: z.boolean().describe("false: it was there already"), sandbox: SandboxBrief }),
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  async run(spec, call) {
    const { sandbox, created } = await make(spec, call);
    const brief = briefOf(sandbox.info);
    return {
      facts: { created, sandbox: brief },
      text: `${created ? "created" : "it is there already"}: ${briefLine(brief)}`,
    };
  },
});

/** Made with its progress told; one that has the name already is taken, and started. */
async function make(spec: CreateSandbox, call: Call): Promise<{ sandbox: Sandbox; created: boolean }> {
  const { client, signal } = call;
  const onProgress = (event: SandboxEvent) => call.progress(progressText(event));
  try {
    return { sandbox: await Sandbox.create(spec, { client, signal, onProgress }), created: true };
  } catch (error) {
    const isTaken = error instanceof HoldfastError && error.code === "already_exists";
    if (!isTaken || spec.name === undefined) throw error;
    const sandbox = await take({ ...spec, name: spec.name }, { client, signal });
    return { sandbox, created: false };
  }
}

/** As it is; what the caller says about it must be so, and what it leaves out may be anything. */
async function take(
  { limits, ...wanted }: CreateSandbox & { name: string },
  call: Pick<Call, "client" | "signal">,
): Promise<Sandbox> {
  const { spec } = (await Sandbox.get(wanted.name, call)).info;
  const bounds =
    spec.limits !== undefined || limits !== undefined ? { limits: { ...spec.limits, ...limits } } : {};
  return Sandbox.getOrCreate({ ...spec, ...wanted, ...bounds }, call);
}

function progressText({ type, detail }: SandboxEvent): string {
  const { image, layers, layersDone } = detail;
  if (type !== "fetching") return shortened(type, 100);
  const counts = typeof layers === "number" && layers > 0 ? `: ${layersDone} of ${layers} layers` : "";
  return shortened(`fetching the image ${image}${counts}`, 200);
}
