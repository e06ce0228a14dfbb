export * from "./keeper-link.ts";
export * from "./watch.ts";
