import pino from "pino";

/** Constant message, values as fields. */
export interface Log {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** JSON lines on stderr for machines, one short line for a person at a terminal. */
export function createLog(options: { level: string; forPerson: boolean }): Log {
  return options.forPerson ? logTo({ write: writeForPerson }, options) : logTo(gathered(stderr()), options);
}

/** Flushed after each warning and error: whatever they tell of may be about to end us. */
export function logTo(
  destination: { write(line: string): void; flush?(): void },
  { level }: { level: string },
): Log {
  const logger = pino({ level, base: null }, destination);
  return {
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn(message, fields) {
      logger.warn(fields ?? {}, message);
      destination.flush?.();
    },
    error(message, fields) {
      logger.error(fields ?? {}, message);
      destination.flush?.();
    },
  };
}

/** Lines wait so long for others: each written by itself wakes two threads, which is a fifth of a short call's time. */
const GATHERED_MS = 20;

interface Sink {
  /** Never waits: whoever reads our log may have stopped. */
  write(text: string): void;
  /** Has written it, and what came before, when it returns. */
  writeLast(text: string): void;
}

/** Writes lines together. What still waits is written when the process ends, unless it is killed. */
export function gathered(
  sink: Sink,
  { onExit = (flush: () => void) => void process.once("exit", flush) } = {},
): { write(line: string): void; flush(): void } {
  let lines = "";
  let timer: Timer | undefined;
  const take = () => {
    clearTimeout(timer);
    timer = undefined;
    const taken = lines;
    lines = "";
    return taken;
  };
  const flush = () => sink.write(take());
  onExit(() => sink.writeLast(take()));
  return {
    flush,
    write(line) {
      lines += line;
      timer ??= setTimeout(flush, GATHERED_MS).unref();
    },
  };
}

function stderr(): Sink {
  const later = pino.destination({ dest: 2, sync: false });
  return {
    write: (text) => void later.write(text),
    writeLast(text) {
      later.flushSync();
      pino.destination({ dest: 2, sync: true }).write(text);
    },
  };
}

export const silentLog: Log = { info() {}, warn() {}, error() {} };

function writeForPerson(line: string): void {
  const { time, level, msg, ...fields } = JSON.parse(line) as { time: number; level: number; msg: string };
  const clock = new Date(time).toTimeString().slice(0, 8);
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const mark = level >= 50 ? "error " : level >= 40 ? "warn " : "";
  process.stderr.write(`${clock} ${mark}${msg} ${shown.join(" ")}\n`);
}
