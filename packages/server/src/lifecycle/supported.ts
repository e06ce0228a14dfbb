import type { Capabilities, Provider } from "@holdfast/core";
import { HoldfastError, isWithin, type SandboxSpec } from "@holdfast/protocol";

/** Refuses at creation what could only fail later. */
export function checkSupported({ kind, capabilities }: Provider, spec: SandboxSpec): void {
  for (const check of checks) {
    const refusal = check(spec, capabilities, kind);
    if (refusal !== undefined) {
      throw new HoldfastError("unsupported", refusal.message, { hint: refusal.hint, started: "no" });
    }
  }
}

type Check = (
  spec: SandboxSpec,
  capabilities: Capabilities,
  kind: string,
) => { message: string; hint: string } | undefined;

const OTHER_PROVIDER = "choose a provider that can (`holdfast providers`)";

const checks: readonly Check[] = [
  ({ image }, { images }, kind) =>
    image === undefined || images
      ? undefined
      : {
          message: `provider ${kind} has no images: it cannot start from ${image}`,
          hint: "leave out `image` to use this machine's own programs, or choose a provider that has images (`holdfast providers`)",
        },
  ({ network = "full" }, { networks }, kind) =>
    networks.includes(network)
      ? undefined
      : {
          message: `provider ${kind} cannot give network "${network}" on this machine`,
          hint: `run \`holdfast doctor\` for what is missing, or ask for network: ${networks.map((one) => `"${one}"`).join(" or ")}`,
        },
  ({ user }, { users }, kind) =>
    user === undefined || users
      ? undefined
      : {
          message: `provider ${kind} has one user for all work: it cannot run as ${user}`,
          hint: `leave out \`user\`, or ${OTHER_PROVIDER}`,
        },
  (spec, { readOnly }, kind) =>
    spec.readOnly !== true || readOnly
      ? undefined
      : {
          message: `provider ${kind} cannot make the file system read-only`,
          hint: `leave out \`readOnly\`, or ${OTHER_PROVIDER}`,
        },
  (spec, { tmpfs }, kind) =>
    spec.tmpfs === undefined || tmpfs
      ? undefined
      : {
          message: `provider ${kind} has no places in memory`,
          hint: `leave out \`tmpfs\`, or ${OTHER_PROVIDER}`,
        },
  ({ runtime }, { runtimes }, kind) =>
    runtime === undefined || runtimes.includes(runtime)
      ? undefined
      : {
          message: `provider ${kind} has no runtime ${runtime}`,
          hint:
            runtimes.length === 0
              ? "leave out `runtime`: it cannot be chosen there"
              : `it knows: ${runtimes.join(", ")}`,
        },
  ({ mounts = [] }, { mounts: allowed }, kind) => {
    const refused = mounts.find(({ source }) => !allowed.some((one) => isWithin(source, dirOf(one))));
    if (refused === undefined) return undefined;
    return {
      message: `the operator does not let sandboxes on ${kind} see ${refused.source}`,
      hint:
        allowed.length === 0
          ? `start the server with --allow-mount ${refused.source}:ro to let them read it`
          : `what may be mounted is in: ${allowed.join(", ")}`,
    };
  },
  ({ limits }, capabilities) =>
    limits?.required && !capabilities.limits.enforced
      ? {
          message: `limits cannot be enforced here: ${capabilities.limits.detail}`,
          hint: "leave out limits.required to run without them, or see `holdfast doctor`",
        }
      : undefined,
  ({ limits }, capabilities) =>
    limits?.required && limits.diskMiB !== undefined && !capabilities.limits.disk.enforced
      ? {
          message: `the disk cannot be limited here: ${capabilities.limits.disk.detail}`,
          hint: "leave out limits.diskMiB, or limits.required to run without it",
        }
      : undefined,
];

function dirOf(allowed: string): string {
  return allowed.replace(/:ro$/, "");
}
