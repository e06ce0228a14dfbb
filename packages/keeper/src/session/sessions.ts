import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ChosenId, type CreateSession, HoldfastError } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import { fingerprint } from "../engine/ids.ts";
import { type Checkpoint, readCheckpoint, type SessionFacts } from "./checkpoint.ts";
import { nearestExisting } from "./cwd.ts";
import { chooseShell } from "./make-shell.ts";
import { Session } from "./session.ts";

// Each has a shell, a savepoint and a dozen descriptors: this many fit into the usual limits of a sandbox.
const MAX_SESSIONS = 100;

/** All sessions of a sandbox, also those that an earlier keeper left on its disk. */
export class Sessions {
  readonly #engine: Engine;
  readonly #dir: string;
  readonly #sessions = new Map<string, Session>();
  readonly #beginning = new Map<string, Promise<unknown>>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#dir = join(engine.boot.stateDir, "sessions");
    for (const id of idsIn(this.#dir)) this.#findOnDisk(id);
  }

  /** The same request with the same id finds the session that the first one made. */
  async create(request: CreateSession): Promise<{ session: Session; made: boolean }> {
    const sessionId = request.sessionId ?? `ses-${crypto.randomUUID().slice(0, 13)}`;
    const facts = this.#factsOf(sessionId, request);
    await this.#beginning.get(sessionId);
    const known = this.#sessions.get(sessionId);
    if (known !== undefined) {
      if (known.facts.fingerprint !== facts.fingerprint) throw taken(sessionId);
      return { session: known, made: false };
    }
    if (this.#sessions.size >= MAX_SESSIONS) throw tooMany();
    if (nearestExisting(facts.startCwd) !== facts.startCwd) throw noDirectory(facts.startCwd);
    const session = new Session({
      engine: this.#engine,
      facts,
      dir: this.#dirOf(sessionId),
      cwd: facts.startCwd,
    });
    this.#sessions.set(sessionId, session);
    await this.#begin(session);
    return { session, made: true };
  }

  get(id: string): Session {
    const session = this.#sessions.get(id);
    if (session !== undefined) return session;
    throw new HoldfastError("not_found", `there is no session ${id}`, {
      hint: "list the sessions, or create one: no command runs in a session that was not asked for",
      started: "no",
    });
  }

  list(): Session[] {
    return [...this.#sessions.values()];
  }

  /** Ends a session and all that it started. Succeeds if there is none. */
  async remove(id: string): Promise<void> {
    const session = this.#sessions.get(id);
    await session?.close();
    if (this.#sessions.get(id) === session) this.#sessions.delete(id);
  }

  /** Before the instance stops: writes every session's state to disk. */
  async stop(): Promise<void> {
    await Promise.all(this.list().map((session) => session.stop()));
  }

  async #begin(session: Session): Promise<void> {
    const { sessionId } = session.facts;
    const beginning = session.begin();
    this.#beginning.set(
      sessionId,
      beginning.catch(() => {}),
    );
    try {
      await beginning;
    } catch (error) {
      await this.remove(sessionId);
      throw error;
    } finally {
      this.#beginning.delete(sessionId);
    }
  }

  #factsOf(sessionId: string, request: CreateSession): SessionFacts {
    const { sessionId: _, ...wanted } = request;
    return {
      sessionId,
      createdAt: this.#engine.now,
      fingerprint: fingerprint(wanted),
      shell: chooseShell(this.#engine, request.shell),
      startCwd: request.cwd ?? this.#engine.boot.cwd,
      ...(request.env !== undefined && { env: request.env }),
      ...(request.commandTimeoutMs !== undefined && { commandTimeoutMs: request.commandTimeoutMs }),
    };
  }

  #findOnDisk(id: string): void {
    const dir = this.#dirOf(id);
    const checkpoint = readCheckpoint(dir);
    if (checkpoint?.facts.sessionId !== id) return;
    const { facts, cwd } = checkpoint;
    const asleep = { commandsLost: this.#commandsSince(checkpoint) };
    this.#sessions.set(id, new Session({ engine: this.#engine, facts, dir, cwd, asleep }));
  }

  /** Commands whose effect on the state was to stay, and is not in the checkpoint. */
  #commandsSince({ facts, savedAt }: Checkpoint): number {
    let count = 0;
    for (const { facts: of, end } of this.#engine.records.finished()) {
      const kept =
        of.sessionId === facts.sessionId && end.extra?.stateKept === true && end.extra.ran === true;
      if (kept && end.at > savedAt) count += 1;
    }
    return count;
  }

  #dirOf(id: string): string {
    return join(this.#dir, id);
  }
}

function idsIn(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => ChosenId.safeParse(name).success);
  } catch {
    return []; // no session was ever made here
  }
}

function taken(id: string): HoldfastError {
  return new HoldfastError("already_exists", `the session ${id} exists and was asked for differently`, {
    hint: "use it as it is, delete it first, or choose another id",
    started: "no",
  });
}

function noDirectory(cwd: string): HoldfastError {
  return new HoldfastError("invalid_argument", `the working directory ${cwd} does not exist`, {
    hint: "create the directory first, or give another cwd",
    started: "no",
    details: { cwd },
  });
}

function tooMany(): HoldfastError {
  return new HoldfastError("limit_reached", `a sandbox holds at most ${MAX_SESSIONS} sessions`, {
    hint: "delete sessions that are no longer used",
    started: "no",
  });
}
