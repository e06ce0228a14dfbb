export * from "./clock.ts";
export * from "./provider.ts";
