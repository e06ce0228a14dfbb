export { type DaemonOptions, type DockerDaemon, startDockerDaemon } from "./docker-daemon.ts";
export { type Engine, missingDocker } from "./docker-engines.ts";
export * from "./fake-provider.ts";
export { type ImageRegistry, missingRegistry, startImageRegistry } from "./image-registry.ts";
export * from "./postgres.ts";
export * from "./provider-conformance.ts";
export { missingSsh, type SshServer, startSshServer } from "./ssh-server.ts";
export * from "./store-conformance.ts";
export { insertReserved, must, newLease, rules, sandboxRow } from "./store-fixtures.ts";
