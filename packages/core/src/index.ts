export * from "./backoff.ts";
export * from "./clock.ts";
export * from "./lease.ts";
export * from "./next-step.ts";
export * from "./provider.ts";
export * from "./store.ts";
