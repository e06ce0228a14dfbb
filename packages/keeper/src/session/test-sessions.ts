import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CreateSession, Env, SessionCommandResult, SessionExecRequest } from "@holdfast/protocol";
import { SessionCommandResult as ResultSchema } from "@holdfast/protocol";
import { Engine } from "../engine/engine.ts";
import { hasEnvironmentEntry, listProcesses } from "../engine/proc-table.ts";
import type { Session } from "./session.ts";
import { Sessions } from "./sessions.ts";

/** Sessions of a sandbox of their own, without the HTTP around them. */
export interface TestSessions extends AsyncDisposable {
  readonly engine: Engine;
  readonly sessions: Sessions;
  /** Where this test may write; the shells start in its `work`. */
  readonly dir: string;
  create(request?: CreateSession): Promise<TestSession>;
  /** Every process that was started here and still runs. */
  processes(): number[];
  /** The same disk, seen by a keeper that starts now; the one before is taken for dead. */
  nextKeeper(env?: Env): TestSessions;
}

export interface TestSession {
  readonly session: Session;
  run(command: string, how?: Partial<SessionExecRequest>): Promise<SessionCommandResult>;
}

export function testSessions(options: { dir?: string; env?: Env } = {}): TestSessions {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "sessions-"));
  const work = join(dir, "work");
  mkdirSync(work, { recursive: true });
  const engine = new Engine({
    secret: "x".repeat(32),
    sandboxId: `sbx-${crypto.randomUUID()}`,
    instanceId: "i-1",
    generation: 1,
    socketPath: join(dir, "s"),
    stateDir: join(dir, "state"),
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: work, LANG: "C.UTF-8", ...options.env },
    cwd: work,
  });
  const sessions = new Sessions(engine);
  const processes = () =>
    listProcesses()
      .map(({ pid }) => pid)
      .filter((pid) => hasEnvironmentEntry(pid, `HOLDFAST_SANDBOX_ID=${engine.boot.sandboxId}`));
  return {
    engine,
    sessions,
    dir,
    processes,
    async create(request = {}) {
      const { session } = await sessions.create(request);
      return testSession(session);
    },
    nextKeeper: (env) => testSessions({ dir, ...(env !== undefined && { env }) }),
    async [Symbol.asyncDispose]() {
      for (const session of sessions.list()) await session.close();
      for (const pid of processes()) process.kill(pid, "SIGKILL");
      engine.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export function testSession(session: Session): TestSession {
  return {
    session,
    run: async (command, how = {}) => ResultSchema.parse(await session.exec({ command, ...how })),
  };
}

export function openDescriptors(): number {
  return readdirSync("/proc/self/fd").length;
}
