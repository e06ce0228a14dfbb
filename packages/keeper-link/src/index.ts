export * from "./keeper-link.ts";
export type { Watch } from "./watch.ts";
