export { createDockerProvider, type DockerProviderOptions } from "./docker/provider.ts";
export { createLocalProvider, type LocalProviderOptions } from "./local/provider.ts";
export type { AllowedMount } from "./mounts.ts";
