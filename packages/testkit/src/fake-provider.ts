import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  Capabilities,
  Check,
  DiskObservation,
  Found,
  InstanceRef,
  LaunchPlan,
  Observation,
  Provider,
  SandboxRef,
} from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";
import { startFakeKeeper } from "./fake-keeper.ts";

/** Stays after a crash, as a container or a directory does, until it is stopped. */
interface FakeInstance {
  readonly ref: InstanceRef;
  readonly socketPath: string;
  keeper: Bun.Server<undefined> | undefined;
}

/** Faults to be had, each until it is taken back. `lostAnswer`: the work is done, the reply is not received. */
export interface Faults {
  launch?: "fails" | "lostAnswer";
  stop?: "fails" | "lostAnswer" | "survives";
  observe?: "fails";
  removeDisk?: "fails";
}

/** A provider in memory whose keepers are real sockets that answer just enough. Passes the provider's own suite. */
export class FakeProvider implements Provider {
  readonly kind = "fake";
  readonly capabilities: Capabilities = {
    persistentDisk: true,
    settleMs: 0,
    networks: ["none", "full"],
    limits: { enforced: false, detail: "a fake has none" },
  };
  readonly faults: Faults = {};
  /** What was asked of the backend, in order: for counting, not for asserting how. */
  readonly launches: string[] = [];
  readonly #dir = mkdtempSync(join(tmpdir(), "holdfast-fake-"));
  readonly #instances = new Map<string, FakeInstance>();
  readonly #disks = new Map<string, SandboxRef>();

  async probe(): Promise<readonly Check[]> {
    return [{ name: "fake", ok: true, required: true, detail: "always there" }];
  }

  async launch(ref: InstanceRef, plan: LaunchPlan): Promise<void> {
    const name = nameOf(ref);
    if (this.faults.launch === "fails") throw new HoldfastError("launch_failed", "the image is broken");
    const there = this.#instances.get(name);
    if (there === undefined) this.#start(ref, plan);
    else assertAccepted(there, ref);
    if (this.faults.launch === "lostAnswer") throw new HoldfastError("unavailable", "the answer was lost");
  }

  async observe(ref: InstanceRef): Promise<Observation> {
    if (this.faults.observe === "fails") throw new HoldfastError("provider_unavailable", "could not look");
    const found = this.#find(ref);
    if (found?.keeper === undefined) return { state: "absent", detail: "not in memory" };
    return {
      state: "running",
      keeper: { kind: "unix", path: found.socketPath },
      limits: { state: "none" },
      detail: nameOf(ref),
    };
  }

  async stop(ref: InstanceRef): Promise<Observation> {
    if (this.faults.stop === "fails") throw new HoldfastError("provider_unavailable", "could not stop");
    if (this.faults.stop !== "survives" && this.#find(ref) !== undefined) {
      this.kill(ref);
      this.#instances.delete(nameOf(ref));
    }
    if (this.faults.stop === "lostAnswer") throw new HoldfastError("unavailable", "the answer was lost");
    return this.observe(ref);
  }

  async removeDisk(sandbox: SandboxRef): Promise<DiskObservation> {
    assertSafeId(sandbox.sandboxId);
    if (this.faults.removeDisk === "fails")
      throw new HoldfastError("provider_unavailable", "could not remove");
    if ([...this.#instances.values()].some(({ ref }) => isSameSandbox(ref, sandbox))) {
      throw new HoldfastError(
        "wrong_state",
        "cannot remove the disk: an instance of the sandbox still exists",
      );
    }
    const disk = this.#disks.get(sandbox.sandboxId);
    if (disk !== undefined && isSameSandbox(disk, sandbox)) this.#disks.delete(sandbox.sandboxId);
    return { state: "absent", detail: "not in memory" };
  }

  async discover(installationId: string): Promise<readonly Found[]> {
    const instances = [...this.#instances.values()].map(({ ref }) => ({ kind: "instance", ref }) as const);
    const disks = [...this.#disks.values()].map((ref) => ({ kind: "disk", ref }) as const);
    return [...instances, ...disks].filter(({ ref }) => ref.installationId === installationId);
  }

  /** As a crash would: what is left of it is not started again. */
  kill(ref: InstanceRef): void {
    const found = this.#find(ref);
    void found?.keeper?.stop(true);
    if (found !== undefined) found.keeper = undefined;
  }

  /** Those that run. */
  refs(): InstanceRef[] {
    return [...this.#instances.values()].filter(({ keeper }) => keeper !== undefined).map(({ ref }) => ref);
  }

  /** Everything that was not removed: instances, disks, sockets. */
  leftovers(): string[] {
    const disks = [...this.#disks.keys()].map((sandboxId) => `disk ${sandboxId}`);
    return [...this.#instances.keys(), ...disks, ...readdirSync(this.#dir)];
  }

  close(): void {
    for (const ref of this.refs()) this.kill(ref);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** By its whole identity: another's instance of the same name is as good as not there. */
  #find(ref: InstanceRef): FakeInstance | undefined {
    const found = this.#instances.get(nameOf(ref));
    return found !== undefined && isSameInstance(found.ref, ref) ? found : undefined;
  }

  #start(ref: InstanceRef, { secret }: LaunchPlan): void {
    const { installationId, sandboxId } = ref;
    const disk = this.#disks.get(sandboxId);
    if (disk !== undefined && !isSameSandbox(disk, ref))
      throw taken("the disk belongs to another installation");
    this.#disks.set(sandboxId, { installationId, sandboxId });
    this.launches.push(nameOf(ref));
    const socketPath = join(this.#dir, `${this.launches.length}.sock`);
    const keeper = startFakeKeeper(ref, { socketPath, secret });
    this.#instances.set(nameOf(ref), { ref, socketPath, keeper });
  }
}

function assertAccepted(there: FakeInstance, ref: InstanceRef): void {
  if (!isSameInstance(there.ref, ref)) throw taken(`${nameOf(ref)} is already the name of another instance`);
  if (there.keeper === undefined) throw new HoldfastError("launch_failed", `${nameOf(ref)} has ended before`);
}

function taken(message: string): HoldfastError {
  return new HoldfastError("already_exists", message, { started: "no" });
}

function isSameSandbox(a: SandboxRef, b: SandboxRef): boolean {
  return a.installationId === b.installationId && a.sandboxId === b.sandboxId;
}

function isSameInstance(a: InstanceRef, b: InstanceRef): boolean {
  return isSameSandbox(a, b) && a.instanceId === b.instanceId && a.generation === b.generation;
}

function nameOf({ sandboxId, generation }: InstanceRef): string {
  assertSafeId(sandboxId);
  return `hf-${sandboxId}-g${generation}`;
}

function assertSafeId(sandboxId: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(sandboxId)) return;
  throw new HoldfastError("invalid_argument", `"${sandboxId}" cannot be the id of a sandbox`);
}
