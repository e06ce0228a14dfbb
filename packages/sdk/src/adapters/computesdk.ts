import { defineProvider } from "@computesdk/provider";
import { HoldfastError } from "@holdfast/protocol/errors";
import type { CallOptions } from "../lifecycle.ts";
import { Sandbox } from "../sandbox.ts";
import { Snapshot } from "../snapshots.ts";

/** Which server; nothing on the server's own machine. */
export type HoldfastConfig = Pick<CallOptions, "url" | "token" | "client">;

/**
 * Holdfast as a provider for computesdk. What it creates stays until it is destroyed, or idle for `timeout`.
 *
 * @example
 * ```ts no-run
 * import { compute } from "computesdk";
 * import { holdfast } from "holdfast/computesdk";
 *
 * compute.setConfig({ provider: holdfast({}) });
 * const sandbox = await compute.sandbox.create();
 * console.log((await sandbox.runCommand("uname -s")).stdout);
 * await sandbox.destroy();
 * ```
 */
export const holdfast = defineProvider<Sandbox, HoldfastConfig, unknown, SnapshotFacts>({
  name: "holdfast",
  methods: {
    sandbox: {
      async create(
        config,
        { timeout, image, templateId, snapshotId, envs, name, cpus, memoryMiB, signal } = {},
      ) {
        const limits = { ...(cpus !== undefined && { cpus }), ...(memoryMiB !== undefined && { memoryMiB }) };
        const picture = image ?? templateId;
        const spec = {
          ...(name !== undefined && { name }),
          ...(picture !== undefined && { image: picture }),
          ...(snapshotId !== undefined && { fromSnapshot: snapshotId }),
          ...(envs !== undefined && { env: envs }),
          ...(Object.keys(limits).length > 0 && { limits }),
          ...(timeout !== undefined && { lifetimeSeconds: Math.max(1, Math.ceil(timeout / 1000)) }),
        };
        return named(await Sandbox.create(spec, { ...config, signal }));
      },
      getById: (config, id) => Sandbox.get(id, config).then(named, unlessMissing),
      list: async (config) => (await Sandbox.list(config)).map(named),
      destroy: async (config, id) => {
        const sandbox = await Sandbox.get(id, config).catch(unlessMissing);
        await sandbox?.delete({ force: true });
      },
      async runCommand(sandbox, command, { cwd, env, timeout, background } = {}) {
        if (background === true) {
          await sandbox.startProcess(command, { cwd, env });
          return { stdout: "", stderr: "", exitCode: 0, durationMs: 0 };
        }
        return sandbox.exec(command, { cwd, env, timeoutMs: timeout });
      },
      async streamCommand(sandbox, command, { cwd, env, timeout, onStdout, onStderr }) {
        const begun = Date.now();
        const process = await sandbox.startProcess(command, { cwd, env, timeoutMs: timeout, stdin: "" });
        const streams = { stdout: new Stream(onStdout), stderr: new Stream(onStderr) };
        let exitCode = 0;
        for await (const event of process.logs({ follow: true })) {
          if (event.type === "exit") exitCode = event.exitCode;
          if (event.type === "stdout" || event.type === "stderr") streams[event.type].add(event.bytes);
        }
        const { stdout, stderr } = streams;
        return { stdout: stdout.text, stderr: stderr.text, exitCode, durationMs: Date.now() - begun };
      },
      async getInfo(sandbox) {
        const { id, state, createdAt, lifetimeSeconds, labels } = (await sandbox.refresh()).info;
        const status = state === "failed" ? "error" : state === "running" ? "running" : "stopped";
        const timeout = lifetimeSeconds * 1000;
        return {
          id,
          provider: "holdfast",
          status,
          createdAt: new Date(createdAt),
          timeout,
          metadata: labels,
        };
      },
      getUrl: async (sandbox, { port }) => (await sandbox.ports.expose(port)).url,
      getInstance: (sandbox) => sandbox,
      filesystem: {
        readFile: (sandbox, path) => sandbox.files.readText(path),
        writeFile: async (sandbox, path, content) => {
          await sandbox.files.write(path, content, { parents: true });
        },
        mkdir: async (sandbox, path) => {
          await sandbox.files.mkdir(path, { parents: true });
        },
        async readdir(sandbox, path) {
          const entries = [];
          for await (const { path: at, type, sizeBytes, modifiedAt } of sandbox.files.list(path))
            entries.push({
              name: at.slice(at.lastIndexOf("/") + 1),
              type: type === "directory" ? ("directory" as const) : ("file" as const),
              size: sizeBytes,
              modified: new Date(modifiedAt),
            });
          return entries;
        },
        exists: (sandbox, path) => sandbox.files.exists(path),
        remove: (sandbox, path) => sandbox.files.delete(path, { recursive: true }),
      },
    },
    snapshot: {
      create: async (config, id, { name } = {}) =>
        factsOf(await (await Sandbox.get(id, config)).snapshot(name === undefined ? {} : { name })),
      list: async (config) => (await Snapshot.list(config)).map(factsOf),
      delete: async (config, id) => {
        const snapshot = await Snapshot.get(id, config).catch(unlessMissing);
        await snapshot?.delete();
      },
    },
  },
});

interface SnapshotFacts {
  id: string;
  provider: string;
  createdAt: Date;
  metadata: { name: string };
}

function factsOf({ id, name, info }: Snapshot): SnapshotFacts {
  return { id, provider: "holdfast", createdAt: new Date(info.createdAt), metadata: { name } };
}

function named(sandbox: Sandbox): { sandbox: Sandbox; sandboxId: string } {
  return { sandbox, sandboxId: sandbox.id };
}

function unlessMissing(error: unknown): null {
  if (error instanceof HoldfastError && (error.code === "not_found" || error.code === "gone")) return null;
  throw error;
}

/** Text as it comes, and all of it in the end; characters that were cut are put together again. */
class Stream {
  readonly #decoder = new TextDecoder();
  readonly #tell: ((text: string) => void) | undefined;
  text = "";

  constructor(tell: ((text: string) => void) | undefined) {
    this.#tell = tell;
  }

  add(bytes: Uint8Array): void {
    const piece = this.#decoder.decode(bytes, { stream: true });
    this.text += piece;
    this.#tell?.(piece);
  }
}
