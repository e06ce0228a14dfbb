import { accessSync, closeSync, constants, statSync } from "node:fs";
import { constants as os } from "node:os";
import { resolve } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { startLeader } from "./children.ts";
import { codeOf } from "./disk-errors.ts";
import { MARKER } from "./environment.ts";
import { exitStatusOf, makeNonBlocking, makePipe, type Pipe } from "./libc.ts";
import { lookAt, type ProcessRef } from "./proc-table.ts";

export interface SpawnRequest {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  /** `empty` reads as end of file at once; `open` can be written to. */
  readonly stdin: "empty" | "open";
  /** Passed on as descriptor 3; it stays the caller's to close. */
  readonly descriptor3?: number | undefined;
}

/** A started program, the leader of its own session and process group. Whoever gets it closes its descriptors. */
export interface Child {
  readonly ref: ProcessRef;
  /** Both ends of each: the one that it writes to is still open here, too. */
  readonly stdout: Pipe;
  readonly stderr: Pipe;
  readonly stdinFd: number | undefined;
  readonly exited: Promise<Exit>;
}

export interface Exit {
  readonly exitCode: number;
  readonly signal: string | null;
}

/** Starts a program, or throws an error that says why not and that nothing was started. */
export function spawn(request: SpawnRequest): Child {
  const pipes: Pipe[] = [];
  try {
    const [stdout, stderr] = [addPipe(pipes), addPipe(pipes)];
    const input = request.stdin === "open" ? addPipe(pipes) : undefined;
    const child = startLeader(request.env[MARKER], () =>
      Bun.spawn({
        cmd: [...request.argv],
        cwd: request.cwd,
        env: request.env,
        stdio: stdioOf([input?.readFd ?? "ignore", stdout.writeFd, stderr.writeFd], request.descriptor3),
        detached: true,
      }),
    );
    if (input !== undefined) {
      closeSync(input.readFd);
      makeNonBlocking(input.writeFd);
    }
    return {
      ref: new ChildRef(child),
      stdout,
      stderr,
      stdinFd: input?.writeFd,
      exited: exitedAlready(child.pid) ?? child.exited.then(() => exitOf(child)),
    };
  } catch (error) {
    for (const { readFd, writeFd } of pipes) for (const fd of [readFd, writeFd]) closeSync(fd);
    // Only now: the kernel has looked already, and says the same of a missing program and a missing directory.
    checkCwd(request.cwd);
    throw cannotStart(request, error);
  }
}

function stdioOf(
  three: ["ignore" | number, number, number],
  fourth: number | undefined,
): ["ignore" | number, number, number, ...number[]] {
  return fourth === undefined ? three : [...three, fourth];
}

// No process has it, so nothing is ever signalled by it.
const NO_START_TIME = -1;

/**
 * The start time is read when it is first needed: right after the start the kernel is still busy loading the program,
 * and a look at it would make the whole keeper wait for that. Until its exit has been seen the number is the child's
 * alone; afterwards it may be anybody's, and is not looked at.
 */
class ChildRef implements ProcessRef {
  readonly #child: Bun.Subprocess;
  #startTime: number | undefined;

  constructor(child: Bun.Subprocess) {
    this.#child = child;
  }

  get pid(): number {
    return this.#child.pid;
  }

  get startTime(): number {
    const { exitCode, signalCode } = this.#child;
    const isOver = exitCode !== null || signalCode !== null;
    this.#startTime ??= (isOver ? undefined : lookAt(this.pid)?.startTime) ?? NO_START_TIME;
    return this.#startTime;
  }
}

function addPipe(pipes: Pipe[]): Pipe {
  const pipe = makePipe();
  pipes.push(pipe);
  return pipe;
}

/** A short command is often over when its start returns; the runtime hears of that only in its next turn. */
function exitedAlready(pid: number): Promise<Exit> | undefined {
  const exitCode = exitStatusOf(pid);
  return exitCode === undefined ? undefined : Promise.resolve({ exitCode, signal: null });
}

/** How a child that has ended did so, as a shell would count it. */
export function exitOf(child: Bun.Subprocess): Exit {
  const { signalCode, exitCode } = child;
  if (signalCode === null) return { exitCode: exitCode ?? 0, signal: null };
  const number = typeof signalCode === "number" ? signalCode : (os.signals[signalCode] ?? 0);
  // Real-time signals have no name here; their number is the truth.
  return { exitCode: 128 + number, signal: typeof signalCode === "number" ? `SIG${number}` : signalCode };
}

/** Throws what a person understands: a spawn says ENOENT for a missing program and a missing folder alike. */
export function checkCwd(cwd: string): void {
  const refuse = (why: string) =>
    new HoldfastError("invalid_argument", `the working directory ${cwd} ${why}`, {
      hint: "create the directory first, or give another cwd",
      started: "no",
      details: { cwd },
    });
  try {
    if (!statSync(cwd).isDirectory()) throw refuse("is not a directory");
    accessSync(cwd, constants.X_OK);
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    throw refuse(codeOf(error) === "ENOENT" ? "does not exist" : "cannot be entered");
  }
}

const reasons: Record<string, { why: string; hint: string }> = {
  EACCES: { why: "is not executable", hint: "make it executable (chmod +x), or run it with its interpreter" },
  ENOEXEC: {
    why: "is no program: it has no #! line and is no binary",
    hint: "run it with its interpreter, such as sh FILE",
  },
  E2BIG: {
    why: "got more arguments and environment than the kernel takes",
    hint: "pass large data on stdin or in a file",
  },
};

type Attempt = Pick<SpawnRequest, "argv" | "cwd">;

/** Says why a program could not be started, from what the kernel said. */
export function cannotStart(request: Attempt, error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const code = codeOf(error) ?? "";
  const program = request.argv[0] ?? "";
  const shown = program.length > 200 ? `${program.slice(0, 200)}…` : program;
  const facts = { started: "no", details: { program: shown, code }, cause: error } as const;
  if (code === "ENOENT") return missingProgram(request, shown, facts);
  const known = reasons[code];
  if (known !== undefined) {
    return new HoldfastError("invalid_argument", `${shown} ${known.why}`, { ...facts, hint: known.hint });
  }
  const hint =
    "the sandbox may be out of processes, memory or file descriptors: end something, then try again";
  const message = `${shown} could not be started: ${error instanceof Error ? error.message : String(error)}`;
  return new HoldfastError("unavailable", message, { ...facts, hint });
}

function missingProgram(
  request: Attempt,
  shown: string,
  facts: { started: "no"; details: Record<string, unknown>; cause: unknown },
): HoldfastError {
  const program = request.argv[0] ?? "";
  if (program.includes("/") && statSync(resolve(request.cwd, program), { throwIfNoEntry: false })) {
    const message = `${shown} needs an interpreter or loader that is not in this sandbox`;
    return new HoldfastError("invalid_argument", message, {
      ...facts,
      hint: "look at its #! line, or at file and ldd",
    });
  }
  const where = program.includes("/") ? "does not exist" : "was not found in PATH";
  const hint = "check the spelling, install it, or give its full path";
  return new HoldfastError("invalid_argument", `the program ${shown} ${where}`, { ...facts, hint });
}
