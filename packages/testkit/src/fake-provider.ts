import { mkdtempSync, rmSync } from "node:fs";
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
import { type AdmitRequest, HoldfastError, type KeeperInfo, PROTOCOL_VERSION } from "@holdfast/protocol";

interface FakeInstance {
  readonly ref: InstanceRef;
  readonly socketPath: string;
  readonly keeper: Bun.Server<undefined>;
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
    if (this.faults.launch === "fails") throw new HoldfastError("launch_failed", "the image is broken");
    const name = nameOf(ref);
    this.#disks.set(ref.sandboxId, { installationId: ref.installationId, sandboxId: ref.sandboxId });
    if (!this.#instances.has(name)) {
      this.launches.push(name);
      const socketPath = join(this.#dir, `${this.launches.length}.sock`);
      this.#instances.set(name, {
        ref,
        socketPath,
        keeper: fakeKeeper(ref, { socketPath, secret: plan.secret }),
      });
    }
    if (this.faults.launch === "lostAnswer") throw new HoldfastError("unavailable", "the answer was lost");
  }

  async observe(ref: InstanceRef): Promise<Observation> {
    if (this.faults.observe === "fails") throw new HoldfastError("provider_unavailable", "could not look");
    const found = this.#instances.get(nameOf(ref));
    if (found === undefined) return { state: "absent", detail: "not in memory" };
    return {
      state: "running",
      keeper: { kind: "unix", path: found.socketPath },
      limits: { state: "none" },
      detail: nameOf(ref),
    };
  }

  async stop(ref: InstanceRef): Promise<Observation> {
    if (this.faults.stop === "fails") throw new HoldfastError("provider_unavailable", "could not stop");
    if (this.faults.stop !== "survives") this.kill(ref);
    if (this.faults.stop === "lostAnswer") throw new HoldfastError("unavailable", "the answer was lost");
    return this.observe(ref);
  }

  async removeDisk({ sandboxId }: SandboxRef): Promise<DiskObservation> {
    if (this.faults.removeDisk === "fails")
      throw new HoldfastError("provider_unavailable", "could not remove");
    if ([...this.#instances.values()].some(({ ref }) => ref.sandboxId === sandboxId)) {
      throw new HoldfastError("wrong_state", "cannot remove the disk: an instance uses it");
    }
    this.#disks.delete(sandboxId);
    return { state: "absent", detail: "not in memory" };
  }

  async discover(installationId: string): Promise<readonly Found[]> {
    const instances = [...this.#instances.values()].map(({ ref }) => ({ kind: "instance", ref }) as const);
    const disks = [...this.#disks.values()].map((ref) => ({ kind: "disk", ref }) as const);
    return [...instances, ...disks].filter(({ ref }) => ref.installationId === installationId);
  }

  /** As a crash would. */
  kill(ref: InstanceRef): void {
    const found = this.#instances.get(nameOf(ref));
    this.#instances.delete(nameOf(ref));
    void found?.keeper.stop(true);
  }

  refs(): InstanceRef[] {
    return [...this.#instances.values()].map(({ ref }) => ref);
  }

  close(): void {
    for (const ref of this.refs()) this.kill(ref);
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** Says who it is, takes its admission, and echoes commands. */
function fakeKeeper(
  ref: InstanceRef,
  options: { socketPath: string; secret: string },
): Bun.Server<undefined> {
  let fence = 0;
  const refused = (request: Request) => request.headers.get("authorization") !== `Bearer ${options.secret}`;
  return Bun.serve({
    unix: options.socketPath,
    development: false,
    routes: {
      "/v1/keeper": (request) => (refused(request) ? denied() : Response.json(infoOf(ref, fence))),
      "/v1/admit": async (request) => {
        if (refused(request)) return denied();
        fence = ((await request.json()) as AdmitRequest).fence;
        return new Response(null, { status: 204 });
      },
      "/v1/exec": async (request) => {
        if (refused(request)) return denied();
        return Response.json(echo((await request.json()) as { command: string; commandId?: string }));
      },
    },
    fetch: () =>
      Response.json(new HoldfastError("not_found", "the fake keeper cannot do this").toBody(), {
        status: 404,
      }),
  });
}

function denied(): Response {
  return Response.json(new HoldfastError("unauthenticated", "wrong secret").toBody(), { status: 401 });
}

function infoOf(ref: InstanceRef, fence: number): KeeperInfo {
  const { sandboxId, instanceId, generation } = ref;
  return {
    protocolVersion: PROTOCOL_VERSION,
    sandboxId,
    instanceId,
    generation,
    admitted: fence > 0,
    fence,
    shell: "sh",
    startedAt: new Date(0).toISOString(),
    commandsRunning: 0,
    processesRunning: 0,
  };
}

function echo({ command, commandId = "c1" }: { command: string; commandId?: string }): unknown {
  return {
    commandId,
    status: "exited",
    shell: "sh",
    exitCode: 0,
    signal: null,
    timedOut: false,
    cancelled: false,
    oomKilled: false,
    durationMs: 0,
    stdout: command,
    stderr: "",
    truncated: { stdoutBytes: 0, stderrBytes: 0 },
    log: { firstOffset: 0, nextOffset: command.length },
  };
}

function nameOf({ sandboxId, generation }: InstanceRef): string {
  return `hf-${sandboxId}-g${generation}`;
}
