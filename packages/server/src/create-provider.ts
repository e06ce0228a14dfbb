import type { Provider } from "@holdfast/core";
import { createDockerProvider, createLocalProvider } from "@holdfast/providers";
import type { Config, ProviderKind } from "./config.ts";
import { currentKeeperBundle } from "./keeper-bundle.ts";

/** The backend of that name, as the configuration has it. */
export function createProvider(kind: ProviderKind, { dataDir, dockerHost, dockerImage }: Config): Provider {
  const keeperBundle = currentKeeperBundle();
  switch (kind) {
    case "local":
      return createLocalProvider({ dataDir, keeperBundle });
    case "docker":
      return createDockerProvider({ dataDir, keeperBundle, host: dockerHost, defaultImage: dockerImage });
    default:
      return kind satisfies never;
  }
}
