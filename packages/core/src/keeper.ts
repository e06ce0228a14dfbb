import type { AdmitMessage, KeeperInfo } from "@holdfast/protocol";
import type { KeeperAddress } from "./provider.ts";

export type QuiesceAnswer =
  /** Something holds it awake, or did less than a lifetime ago. */
  | { readonly state: "busy"; readonly because: readonly string[]; readonly idleForMs: number }
  /** It is idle, and refuses work from now on, for a few seconds. */
  | { readonly state: "quiesced" };

/** What the lifecycle says to a keeper. Every call carries the fence that the line was opened with. */
export interface KeeperControl {
  info(): Promise<Pick<KeeperInfo, "instanceId" | "claimFence" | "isOwned">>;
  /** Opens the gate. May be said again; the newest policy counts. */
  admit(request: AdmitMessage): Promise<void>;
  /** While this stands, the keeper knows that it has a server. `onEnd`: the keeper is gone, or the line to it is. */
  watch(options: { onEnd: () => void }): Promise<{ close(): void }>;
  quiesce(request: { lifetimeMs: number }): Promise<QuiesceAnswer>;
  /** Takes a `quiesce` back. */
  resume(): Promise<void>;
  /** Counts as use. */
  touch(options?: { claimFence?: number }): Promise<unknown>;
  /** A look: what holds it awake, and for how long nothing has. */
  activity(): Promise<{ readonly idleForMs: number; readonly heldAwakeBy: readonly string[] }>;
  /** From now on work under a lower claim fence is refused; with `required`, also work under none. */
  claimFence(request: { fence: number; required: boolean }): Promise<unknown>;
}

/** How keepers are reached. Opens no connection yet. */
export type KeeperDoor<Link extends KeeperControl> = (options: {
  address: KeeperAddress;
  secret: string;
  fence: number;
}) => Link;
