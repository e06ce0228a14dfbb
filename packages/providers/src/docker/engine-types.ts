/** What we read of the daemon's answers, in its own names. */

export interface Container {
  readonly Id: string;
  /** With a slash before it. */
  readonly Name: string;
  readonly Created: string;
  readonly Image: string;
  readonly Config: { readonly Labels: Readonly<Record<string, string>> | null; readonly User?: string };
  readonly State: ContainerState;
  readonly HostConfig?: { readonly Tmpfs?: Readonly<Record<string, string>> | null };
  /** Of what it has beyond its image; only where it was asked for. */
  readonly SizeRw?: number;
  readonly NetworkSettings?: {
    /** By their names. */
    readonly Networks?: Readonly<Record<string, { readonly NetworkID?: string }>> | null;
  };
  readonly Mounts?: readonly { readonly Type: string; readonly Destination: string }[] | null;
}

interface ContainerState {
  readonly Status: ContainerStatus;
  readonly Pid: number;
  readonly ExitCode: number;
  readonly OOMKilled: boolean;
  readonly Error: string;
  readonly StartedAt: string;
  readonly FinishedAt: string;
}

type ContainerStatus = "created" | "running" | "paused" | "restarting" | "removing" | "exited" | "dead";

export interface ListedContainer {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Labels: Readonly<Record<string, string>> | null;
  /** In seconds. */
  readonly Created: number;
}

export interface Volume {
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}

export interface VolumeList {
  readonly Volumes: readonly Volume[] | null;
  /** What it could not look at: the list is not complete then. */
  readonly Warnings: readonly string[] | null;
}

export interface Network {
  readonly Id: string;
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}

/** A path in a container that is not as its image has it. */
export interface Change {
  readonly Path: string;
}

export interface ListedImage {
  readonly RepoTags: readonly string[] | null;
  readonly Labels: Readonly<Record<string, string>> | null;
}

export interface Image {
  readonly Id: string;
  readonly Config: {
    readonly Env?: readonly string[] | null;
    readonly Labels?: Readonly<Record<string, string>> | null;
  } | null;
}

export interface Info {
  /** Of the daemon and its data; Podman makes one up for each answer. */
  readonly ID: string;
  readonly ServerVersion: string;
  readonly DockerRootDir: string;
  readonly MemTotal: number;
  readonly KernelVersion: string;
  /** By its own clock. */
  readonly SystemTime?: string;
  readonly CgroupVersion?: string;
  readonly MemoryLimit: boolean;
  readonly CpuCfsQuota: boolean;
  readonly PidsLimit: boolean;
  readonly SecurityOptions: readonly string[] | null;
  /** How layers are kept, with facts such as the file system below. */
  readonly Driver: string;
  readonly DriverStatus: readonly (readonly [string, string])[] | null;
  readonly Runtimes?: Readonly<Record<string, unknown>> | null;
  /** Podman alone says these. */
  readonly BuildahVersion?: string;
  readonly Rootless?: boolean;
}

/** It speaks the same API, and ignores some of what is asked in it. */
export function isPodman(info: Info): boolean {
  return info.BuildahVersion !== undefined;
}
