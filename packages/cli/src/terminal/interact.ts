import { HoldfastError, type Terminal } from "holdfast";
import { listenForSignals } from "../interruption.ts";
import { isBrokenPipe } from "../print.ts";
import { DetachKeys } from "./detach-keys.ts";
import { Screen } from "./screen.ts";

export type Outcome =
  | { kind: "exited"; exitCode: number; cause: string }
  | { kind: "detached" }
  /** A signal ended us, or nobody reads our output any more. The program goes on. */
  | { kind: "left"; exitCode: number };

// A restart of the server that takes no longer goes unnoticed.
const NOTICE_MS = 1000;
// As a shell reports a local program in the same place: 128 + SIGPIPE.
const BROKEN_PIPE = 141;
const CTRL_C = 3;
const CTRL_D = "\x04";
const LINE_FEED = 10;

/** Lends our terminal to the program until it ends, or somebody detaches. */
export async function interact(terminal: Terminal, options: { readonly: boolean }): Promise<Outcome> {
  const screen = new Screen();
  const left = Promise.withResolvers<Outcome>();
  const interruption = listenForSignals();
  interruption.signal.addEventListener("abort", () =>
    left.resolve({ kind: "left", exitCode: interruption.exitCode() ?? 1 }),
  );
  const stops = [tellOutages(terminal, screen), options.readonly ? () => {} : followSize(terminal, screen)];
  screen.take();
  try {
    const detach = () => left.resolve({ kind: "detached" });
    const input = options.readonly ? watchKeys(detach) : passInput(terminal, detach);
    input.catch(left.reject);
    return await Promise.race([left.promise, showUntilEnd(terminal, screen)]);
  } catch (error) {
    if (isBrokenPipe(error)) return { kind: "left", exitCode: BROKEN_PIPE };
    throw error;
  } finally {
    for (const stop of stops) stop();
    interruption.forget();
    await terminal.close();
    screen.giveBack();
  }
}

async function showUntilEnd(terminal: Terminal, screen: Screen): Promise<Outcome> {
  for await (const event of terminal) {
    if (event.type === "output") await screen.show(event.bytes);
    else await screen.show(new TextEncoder().encode(event.restore));
  }
  const { exitCode, cause } = await terminal.exited;
  return { kind: "exited", exitCode, cause };
}

function passInput(terminal: Terminal, detach: () => void): Promise<void> {
  return process.stdin.isTTY ? passKeys(terminal, detach) : passPipe(terminal);
}

async function passKeys(terminal: Terminal, detach: () => void): Promise<void> {
  const keys = new DetachKeys({
    // Fails only when the terminal has ended, and that is told by the end of its output.
    send: (bytes) => void terminal.write(bytes).catch(() => undefined),
    detach,
    after: afterRealTime,
  });
  for await (const bytes of Bun.stdin.stream()) keys.push(bytes);
}

/** The end of a pipe is told as a terminal tells it: by Ctrl-D at the beginning of a line. */
async function passPipe(terminal: Terminal): Promise<void> {
  let last = LINE_FEED;
  try {
    for await (const bytes of Bun.stdin.stream()) {
      last = bytes.at(-1) ?? last;
      await terminal.write(bytes);
    }
    await terminal.write(last === LINE_FEED ? CTRL_D : CTRL_D + CTRL_D);
  } catch (error) {
    // The program may well end before it has read everything.
    if (!(error instanceof HoldfastError) || error.code !== "wrong_state") throw error;
  }
}

/** Who only watches leaves with Ctrl-C as well; no key of theirs reaches the program. */
async function watchKeys(detach: () => void): Promise<void> {
  if (!process.stdin.isTTY) return;
  const keys = new DetachKeys({ send: () => {}, detach, after: afterRealTime });
  for await (const bytes of Bun.stdin.stream()) {
    if (bytes.includes(CTRL_C)) detach();
    keys.push(bytes);
  }
}

/** Our size is the program's, now and whenever it changes. */
function followSize(terminal: Terminal, screen: Screen): () => void {
  const follow = () => {
    const { size } = screen;
    if (size !== undefined) void terminal.resize(size.cols, size.rows);
  };
  follow();
  process.stdout.on("resize", follow);
  return () => process.stdout.off("resize", follow);
}

function tellOutages(terminal: Terminal, screen: Screen): () => void {
  let cancel: (() => void) | undefined;
  let told = false;
  const stop = terminal.onConnection((change) => {
    cancel?.();
    cancel = undefined;
    if (change === "lost") {
      cancel = afterRealTime(NOTICE_MS, () => {
        told = true;
        void screen.say("the connection is lost; the program goes on, and we try to get back to it");
      });
    } else if (told) {
      told = false;
      void screen.say("connected again").then(() => redraw(terminal, screen));
    }
  });
  return () => {
    cancel?.();
    stop();
  };
}

/** What we said stands in the middle of a full screen: a change of size makes its program draw it anew. */
function redraw(terminal: Terminal, screen: Screen): void {
  const { size } = screen;
  if (!screen.isFullScreen || size === undefined || size.rows < 2) return;
  void terminal.resize(size.cols, size.rows - 1);
  void terminal.resize(size.cols, size.rows);
}

function afterRealTime(ms: number, action: () => void): () => void {
  const timer = setTimeout(action, ms);
  return () => clearTimeout(timer);
}
