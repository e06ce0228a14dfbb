import type { Check, Provider } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import type { Config, ProviderKind } from "./config.ts";

/** A backend, and what it found when it tried what it needs. */
export interface Examined {
  readonly kind: ProviderKind;
  readonly provider: Provider | undefined;
  readonly checks: readonly Check[];
}

/** The backends that sandboxes may be on; the first is for those that name none. */
export interface Chosen {
  readonly providers: readonly Provider[];
  /** Why the first is not the one that everybody else has. */
  readonly because?: string;
  /** What is missing that can be done without. */
  readonly without: readonly Check[];
}

type Make = (kind: ProviderKind, config: Config) => Provider;

/** Where nobody said: namespaces of this machine, and where it has none, Docker. Nothing ever runs unisolated. */
export const inOrder: readonly ProviderKind[] = ["local", "docker"];

/** Tries what a backend needs. Throws nothing: what is wrong is in the list. */
export async function examine(kind: ProviderKind, config: Config, make: Make): Promise<Examined> {
  try {
    const provider = make(kind, config);
    return { kind, provider, checks: await provider.probe() };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const remedy = error.hint === undefined ? {} : { remedy: error.hint };
    const check = { name: kind, ok: false, required: true, detail: error.message, ...remedy };
    return { kind, provider: undefined, checks: [check] };
  }
}

/** What keeps it from being used. */
export function obstacleOf({ checks }: Pick<Examined, "checks">): Check | undefined {
  return checks.find(({ ok, required }) => required && !ok);
}

/** All that were asked for, or else the first that can be used. */
export async function chooseProviders(config: Config, make: Make): Promise<Chosen> {
  if (config.providers !== undefined) return allOf(config.providers, config, make);
  const tried: Examined[] = [];
  for (const kind of inOrder) {
    const examined = await examine(kind, config, make);
    if (examined.provider !== undefined && obstacleOf(examined) === undefined)
      return { ...asChosen([examined]), ...(tried.length > 0 && { because: whyNot(tried) }) };
    tried.push(examined);
  }
  throw new HoldfastError(
    "provider_unavailable",
    `sandboxes cannot be isolated on this machine: ${whyNot(tried)}`,
    { hint: tried.map((one) => `for ${one.kind}: ${remedyOf(one)}`).join("; or ") },
  );
}

async function allOf(kinds: readonly ProviderKind[], config: Config, make: Make): Promise<Chosen> {
  const all: Examined[] = [];
  for (const kind of kinds) {
    const examined = await examine(kind, config, make);
    const obstacle = obstacleOf(examined);
    if (obstacle !== undefined) {
      const message = `provider ${kind} cannot isolate sandboxes here: ${obstacle.name}: ${obstacle.detail}`;
      throw new HoldfastError("provider_unavailable", message, { hint: remedyOf(examined) });
    }
    all.push(examined);
  }
  return asChosen(all);
}

function asChosen(all: readonly Examined[]): Chosen {
  return {
    providers: all.flatMap(({ provider }) => (provider === undefined ? [] : [provider])),
    without: all.flatMap(({ checks }) => checks.filter(({ ok }) => !ok)),
  };
}

export function whyNot(tried: readonly Examined[]): string {
  return tried
    .map((one) => {
      const obstacle = obstacleOf(one);
      return `${one.kind} cannot be used (${obstacle?.name}: ${obstacle?.detail})`;
    })
    .join(", and ");
}

function remedyOf(examined: Examined): string {
  return obstacleOf(examined)?.remedy ?? "run `holdfast doctor` for the whole list";
}
