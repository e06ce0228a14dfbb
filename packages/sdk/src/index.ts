export type {
  Command,
  CommandResult,
  CommandState,
  Continuity,
  CreateSandbox,
  Process as ProcessInfo,
  ProcessStatus,
  Sandbox as SandboxInfo,
  SandboxEvent,
  SandboxSpec,
  SandboxState,
  Terminal as TerminalInfo,
  TerminalExit,
} from "@holdfast/protocol";
export { type ErrorCode, HoldfastError } from "@holdfast/protocol/errors";
export type { LogEvent } from "@holdfast/protocol/log-frames";
export { ScreenModes } from "@holdfast/protocol/screen-modes";
export { Client, type ConnectOptions } from "./client.ts";
export type { ExecOptions, ExecResult, ExecState, RunOptions } from "./exec.ts";
export type { CallOptions, CreateOptions, DeleteOptions, EventOptions, ListOptions } from "./lifecycle.ts";
export type { LogOptions } from "./logs.ts";
export { Process, type SignalName, type StartProcessOptions, type WaitOptions } from "./processes.ts";
export { Sandbox } from "./sandbox.ts";
export {
  type CreateSessionOptions,
  Session,
  type SessionExecResult,
  type SessionExecState,
} from "./sessions.ts";
export type { ConnectionChange } from "./terminal-link.ts";
export type { TerminalEvent } from "./terminal-output.ts";
export { type AttachOptions, Terminal, type TerminalOptions } from "./terminals.ts";
export type { LogMatch, WaitForLogOptions } from "./wait-for-log.ts";
