import type { Provider } from "@holdfast/core";
import { createDockerProvider, createLocalProvider } from "@holdfast/providers";
import type { Config, ProviderKind } from "./config.ts";
import { currentKeeperBundle } from "./keeper-bundle.ts";

/** The backend of that name, as the configuration has it. */
export function createProvider(
  kind: ProviderKind,
  config: Config,
  { tryAgain = false }: { tryAgain?: boolean } = {},
): Provider {
  const { dataDir, allowedMounts } = config;
  const keeperBundle = currentKeeperBundle();
  switch (kind) {
    case "local":
      return createLocalProvider({ dataDir, keeperBundle, allowedMounts });
    case "docker":
      return createDockerProvider({
        ...{ dataDir, keeperBundle, allowedMounts, tryAgain, defaultImage: config.dockerImage },
        ...{ host: config.dockerHost, certPath: config.dockerCertPath, configDir: config.dockerConfigDir },
      });
    default:
      return kind satisfies never;
  }
}
