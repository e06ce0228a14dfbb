import { type Command, InvalidArgumentError, Option } from "commander";
import type { CreateSandbox } from "holdfast";
import { addPolicyOptions, type PolicyOptions, policyOf } from "./policy-options.ts";
import { parseCount, parseMebibytes, parseNumber } from "./units.ts";

export interface SpecOptions extends PolicyOptions {
  name?: string;
  provider?: string;
  image?: string;
  fromSnapshot?: string;
  network?: "none" | "full";
  env?: Record<string, string>;
  label?: Record<string, string>;
  cpus?: number;
  memory?: number;
  pids?: number;
  disk?: number;
  user?: string;
  readOnly?: true;
  mount?: Mount[];
  tmpfs?: Record<string, number>;
  runtime?: string;
  requireLimits?: true;
}

/** What a new sandbox can be asked to be; the same for `create` and `run`. */
export function addSpecOptions(command: Command): Command {
  return addPolicyOptions(command)
    .option("--name <name>", "a name to find it by: a-z, 0-9 and -")
    .option("--provider <provider>", "the backend that holds it")
    .option("--image <image>", "what it starts from, where the provider has images")
    .option("--from-snapshot <snapshot>", "begin with the files of this one, by name or id")
    .addOption(
      new Option("--network <mode>", "none, or full (the default): out, but not to this machine").choices([
        "none",
        "full",
      ]),
    )
    .option(
      "-e, --env <NAME=VALUE>",
      "an environment variable; NAME alone takes ours (again for more)",
      addPair(ourValue),
    )
    .option(
      "-l, --label <NAME=VALUE>",
      "a label (again for more)",
      addPair(() => ""),
    )
    .option("--cpus <number>", "at most so many processors", parseNumber)
    .option("--memory <amount>", "at most so much memory, such as 512m or 2g", parseMebibytes)
    .option("--pids <count>", "at most so many processes and threads", parseCount)
    .option("--disk <amount>", "at most so much disk, such as 2g, where the provider can", parseMebibytes)
    .option("--user <user>", "who work runs as, of the image's users: NAME, UID or UID:GID")
    .option("--read-only", "only the workspace, the home directory and memory can be written")
    .option(
      "--mount <SOURCE:TARGET[:rw]>",
      "see a directory of the server's machine, where its operator allows it (again for more)",
      addMount,
    )
    .option("--tmpfs <PATH=SIZE>", "a place in memory, such as /cache=256m (again for more)", addTmpfs)
    .option("--runtime <runtime>", "what runs it, such as runsc for gVisor")
    .option("--require-limits", "fail rather than run without these limits");
}

export function specOf(options: SpecOptions): CreateSandbox {
  const { name, provider, image, network, env, label, cpus, memory, pids, disk, requireLimits } = options;
  const { user, fromSnapshot, readOnly, mount: mounts, tmpfs, runtime } = options;
  const limits = { cpus, memoryMiB: memory, pids, diskMiB: disk, required: requireLimits };
  const limited = Object.values(limits).some((limit) => limit !== undefined);
  return {
    name,
    provider,
    image,
    fromSnapshot,
    network,
    env,
    labels: label,
    ...{ user, readOnly, mounts, tmpfs, runtime },
    ...policyOf(options),
    ...(limited && { limits }),
  };
}

/** Collects `NAME=VALUE`; what `NAME` alone means is the caller's to say. */
export function addPair(whenAlone: (name: string) => string) {
  return (text: string, all: Record<string, string> = {}): Record<string, string> => {
    const at = text.indexOf("=");
    const name = at === -1 ? text : text.slice(0, at);
    if (name === "") throw new InvalidArgumentError("Write NAME=VALUE.");
    return { ...all, [name]: at === -1 ? whenAlone(name) : text.slice(at + 1) };
  };
}

type Mount = NonNullable<CreateSandbox["mounts"]>[number];

function addMount(text: string, all: Mount[] = []): Mount[] {
  const [source = "", target = "", access = "ro", ...rest] = text.split(":");
  const isClear = source !== "" && target !== "" && ["ro", "rw"].includes(access) && rest.length === 0;
  if (!isClear)
    throw new InvalidArgumentError("Write SOURCE:TARGET, or SOURCE:TARGET:rw to write there, too.");
  return [...all, { source, target, ...(access === "rw" && { writable: true }) }];
}

function addTmpfs(text: string, all: Record<string, number> = {}): Record<string, number> {
  const at = text.lastIndexOf("=");
  if (at < 1) throw new InvalidArgumentError("Write PATH=SIZE, such as /cache=256m.");
  return { ...all, [text.slice(0, at)]: parseMebibytes(text.slice(at + 1)) };
}

export function ourValue(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new InvalidArgumentError(`${name} is not set here.`);
  return value;
}
