import pino from "pino";

/** Constant message, values as fields. */
export interface Log {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** JSON lines on stderr for machines, one short line for a person at a terminal. */
export function createLog(options: { level: string; forPerson: boolean }): Log {
  const destination = options.forPerson ? { write: writeForPerson } : pino.destination(2);
  const logger = pino({ level: options.level, base: null }, destination);
  return {
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
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
