import { access } from "node:fs/promises";
import { join } from "node:path";
import type { Check } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Info } from "./engine-types.ts";
import { canLimit } from "./limits.ts";
import { isOpenToOthers } from "./transport.ts";

export interface ProbeContext {
  readonly host: string;
  readonly certPath: string | undefined;
  readonly keeperBundle: string;
  readonly image: string;
  askDaemon(): Promise<Info>;
  hasImage(): Promise<boolean>;
  /** Launches an instance, for real, and removes it, or knows that it worked. Says how its keeper was reached. */
  tryLaunch(): Promise<{ readonly how: string; readonly isRecalled: boolean }>;
}

/** Tries what a sandbox needs, for real, and says what to type where something is missing. */
export async function probeDocker(context: ProbeContext): Promise<Check[]> {
  const keeper = await checked("keeper", () => checkBundle(context.keeperBundle));
  let info: Info | undefined;
  const daemon = await checked("docker", async () => {
    info = await context.askDaemon();
    return `answers on ${context.host}`;
  });
  if (info === undefined || !keeper.ok) return [daemon, keeper];
  const image = await checked("image", () => checkImage(context));
  const instance = await checked("instance", () => tried(context));
  return [daemon, keeper, ...checkWay(context), { ...image, required: false }, checkLimits(info), instance];
}

async function checkBundle(bundle: string): Promise<string> {
  for (const part of ["ld.so", "lib", "keeper"]) await access(join(bundle, part));
  return bundle;
}

async function checkImage({ image, hasImage }: ProbeContext): Promise<string> {
  if (await hasImage()) return `${image} is there`;
  return `${image} is not there yet: the first sandbox fetches it, and waits for it`;
}

/** Nothing to say of a way that nobody else can be on. */
function checkWay(context: ProbeContext): Check[] {
  if (!isOpenToOthers(context)) return [];
  const detail = `${context.host} is not encrypted: whoever is on the way can be root there`;
  const remedy = "Use ssh://user@host, or TLS (DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH)";
  return [{ name: "way", ok: false, required: false, detail, remedy }];
}

async function tried({ tryLaunch }: ProbeContext): Promise<string> {
  const started = performance.now();
  const { how, isRecalled } = await tryLaunch();
  if (isRecalled) return `a container with its keeper worked before with this daemon; ${how}`;
  const ms = Math.round(performance.now() - started);
  return `a container with its keeper was made and removed in ${ms} ms; ${how}`;
}

function checkLimits(info: Info): Check {
  const { enforced, detail } = canLimit(info);
  const check = { name: "limits", ok: enforced, required: false, detail };
  if (enforced) return check;
  return { ...check, remedy: "Let the kernel's control groups limit memory, cpus and pids: see docker info" };
}

/** A check that could not even be made is a failed one: the list is the answer. */
async function checked(name: string, check: () => Promise<string>): Promise<Check> {
  try {
    return { name, ok: true, required: true, detail: await check() };
  } catch (error) {
    const remedy = error instanceof HoldfastError && error.hint !== undefined ? { remedy: error.hint } : {};
    const detail = error instanceof Error ? error.message : String(error);
    return { name, ok: false, required: true, detail, ...remedy };
  }
}
