// Named, because they win over the types of the same names that `errors.ts` has without zod.

export * from "./change.ts";
export { ErrorBody, Started } from "./error-body.ts";
export * from "./errors.ts";
export * from "./execution.ts";
export {
  type BatchFile,
  BatchReader,
  type BatchResult,
  batchHeader,
  MAX_BATCHED_BYTES,
} from "./file-batch.ts";
export * from "./file-batch-schemas.ts";
export * from "./files.ts";
export * from "./git.ts";
export * from "./keeper-api.ts";
export * from "./keeper-start.ts";
export * from "./lazily.ts";
export * from "./lifecycle.ts";
export * from "./log-frames.ts";
export * from "./names.ts";
export * from "./port.ts";
export * from "./port-flow.ts";
export * from "./sandbox.ts";
export * from "./session.ts";
export * from "./snapshot.ts";
export { InsidePath, isWithin, Mount } from "./spec-paths.ts";
export * from "./sse.ts";
export * from "./terminal.ts";
export * from "./terminal-socket.ts";
export * from "./usage.ts";
export * from "./version.ts";
export * from "./watch.ts";
