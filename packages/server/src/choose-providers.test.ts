import { afterEach, expect, test } from "bun:test";
import { FakeProvider } from "@holdfast/testkit";
import { chooseProviders } from "./choose-providers.ts";
import { type Config, type ProviderKind, readConfig } from "./config.ts";

const made: FakeProvider[] = [];
afterEach(() => {
  for (const provider of made.splice(0)) provider.close();
});

/** Backends of which some work. */
const machine = (...working: ProviderKind[]) => {
  return (kind: ProviderKind) => {
    const provider = new FakeProvider();
    made.push(provider);
    const ok = working.includes(kind);
    const check = {
      name: "needs",
      ok,
      required: true,
      detail: `what ${kind} needs`,
      remedy: `repair ${kind}`,
    };
    return Object.assign(provider, { kind, probe: async () => [check] });
  };
};
const configOf = (...args: string[]) => readConfig(args, {}) as Config;

test("a machine without namespaces but with Docker gets Docker, and is told why", async () => {
  const { providers, because } = await chooseProviders(configOf(), machine("docker"));
  expect(providers.map(({ kind }) => kind as string)).toEqual(["docker"]);
  expect(because).toBe("local cannot be used (needs: what local needs)");
});

test("one with both gets namespaces, and need not be told", async () => {
  const { providers, because } = await chooseProviders(configOf(), machine("local", "docker"));
  expect([providers.map(({ kind }) => kind as string), because]).toEqual([["local"], undefined]);
});

test("one with neither is refused, with both remedies", async () => {
  await expect(chooseProviders(configOf(), machine())).rejects.toMatchObject({
    code: "provider_unavailable",
    hint: "for local: repair local; or for docker: repair docker",
  });
});

test("what was asked for is not replaced by something else", async () => {
  await expect(chooseProviders(configOf("--providers", "local"), machine("docker"))).rejects.toMatchObject({
    code: "provider_unavailable",
    hint: "repair local",
  });
});
