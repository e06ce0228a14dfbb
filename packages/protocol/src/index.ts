export * from "./errors.ts";
export * from "./execution.ts";
export * from "./keeper-api.ts";
export * from "./log-frames.ts";
export * from "./names.ts";
export * from "./sandbox.ts";
export * from "./sse.ts";
export * from "./version.ts";
