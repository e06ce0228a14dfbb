export type {
  Change,
  CloneResult,
  Command,
  CommandResult,
  CommandState,
  Continuity,
  CreateSandbox,
  FileInfo,
  FileType,
  GitDiff,
  GitStatus,
  InstanceInfo,
  LeaseInfo,
  Policy,
  Port as PortInfo,
  Process as ProcessInfo,
  ProcessStatus,
  ProviderInfo,
  Sandbox as SandboxInfo,
  SandboxEvent,
  SandboxPort as SandboxPortInfo,
  SandboxSpec,
  SandboxState,
  Snapshot as SnapshotInfo,
  SweepReport,
  TarResult,
  Terminal as TerminalInfo,
  TerminalExit,
  Turn as TurnInfo,
  UpdateSandbox,
  Usage,
  WatchEvent,
  Why,
} from "@holdfast/protocol";
export { type ErrorCode, HoldfastError } from "@holdfast/protocol/errors";
export type { LogEvent } from "@holdfast/protocol/log-frames";
export { ScreenModes } from "@holdfast/protocol/screen-modes";
export { type ChangeOptions, followChanges } from "./changes.ts";
export { Claim, type ClaimOptions } from "./claims.ts";
export { Client, type ConnectOptions } from "./client.ts";
export type { ExecOptions, ExecResult, ExecState, RunOptions } from "./exec.ts";
export type { FilePath } from "./file-paths.ts";
export {
  type FileContent,
  type FileOptions,
  Files,
  type ListFilesOptions,
  type StatOptions,
  type WriteOptions,
  type WriteTarOptions,
} from "./files.ts";
export type { CloneOptions, CloneProgress, Git, GitDiffOptions } from "./git.ts";
export type {
  CallOptions,
  CreateOptions,
  DeleteOptions,
  GetOrCreateOptions,
  ListOptions,
  ProgressOptions,
  QueueOptions,
} from "./lifecycle.ts";
export type { LogOptions } from "./logs.ts";
export { Operator } from "./operator.ts";
export { type ExposeOptions, Ports } from "./ports.ts";
export { Process, type SignalName, type StartProcessOptions, type WaitOptions } from "./processes.ts";
export type { OpenFile, ReadOptions } from "./read-file.ts";
export { Sandbox } from "./sandbox.ts";
export type { Conditions, Waiting } from "./scope.ts";
export {
  type CreateSessionOptions,
  Session,
  type SessionExecResult,
  type SessionExecState,
} from "./sessions.ts";
export {
  type ForkOptions,
  type ImportOptions,
  type ListSnapshotsOptions,
  Snapshot,
  type SnapshotOptions,
} from "./snapshots.ts";
export type { SyncOptions, SyncResult } from "./sync/options.ts";
export type { ConnectionChange } from "./terminal-link.ts";
export type { TerminalEvent } from "./terminal-output.ts";
export { type AttachOptions, Terminal, type TerminalOptions } from "./terminals.ts";
export type { EventOptions } from "./timeline.ts";
export { type BeginTurnOptions, Turn } from "./turns.ts";
export type { UploadOptions } from "./upload.ts";
export type { FollowUsageOptions, UsageOptions } from "./usage.ts";
export type { LogMatch, WaitForLogOptions } from "./wait-for-log.ts";
export type { FileEvent, WatchOptions } from "./watch.ts";
