import type { Usage } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import { lookAt } from "../engine/proc-table.ts";
import { processesOf } from "../engine/sandbox-processes.ts";
import type { Parts } from "../parts.ts";
import { listeningPorts } from "../ports/listening.ts";
import { DiskUse } from "./disk-use.ts";
import { memoryUse } from "./memory-use.ts";

export interface UsageParts extends Pick<Parts, "sessions" | "terminals"> {
  readonly engine: Engine;
}

/** What the sandbox uses now. By what any process may read of others, so it is the same on every provider. */
export class UsageMeter {
  readonly #parts: UsageParts;
  readonly #disk: DiskUse;

  constructor(parts: UsageParts) {
    const { cwd, env } = parts.engine.boot;
    this.#parts = parts;
    this.#disk = new DiskUse([cwd, env.HOME ?? cwd]);
  }

  async sample(): Promise<Usage> {
    const { engine } = this.#parts;
    const disk = await this.#disk.measured();
    const processes = processesOf(engine.boot.sandboxId);
    // What has ended is in its parent's count, and at last in ours.
    const ended = lookAt(process.pid)?.waitedCpuMs ?? 0;
    const pids = processes.map(({ pid }) => pid);
    return {
      at: new Date(engine.now).toISOString(),
      cpuMs: processes.reduce((sum, { cpuMs, waitedCpuMs }) => sum + cpuMs + waitedCpuMs, ended),
      ...memoryUse(engine.boot.memoryCgroupDir, pids),
      processes: pids.length,
      ...disk,
      inside: this.#inside(),
    };
  }

  /** A number for what a list of processes, sessions, terminals and ports would show. */
  #inside(): string {
    const { engine, sessions, terminals } = this.#parts;
    const runs = [...engine.runs()].map(({ id, record }) => [record.kind, id]);
    const shells = sessions.loaded?.list().map((session) => [session.facts, session.cwd]);
    const screens = terminals.loaded?.list().map(({ ptyId, state, viewers }) => [ptyId, state, viewers]);
    return Bun.hash(JSON.stringify([runs, shells, screens, listeningPorts()])).toString(36);
  }
}
