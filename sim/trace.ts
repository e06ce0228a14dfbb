/** How many of the last lines a failure shows: enough to see the step that broke it and what led there. */
const TAIL = 60;

/** What happened, in order: hashed for the comparison of two runs, the end of it kept for people. */
export class Trace {
  readonly #tail: string[] = [];
  readonly #print: ((line: string) => void) | undefined;
  #hash = 0xcbf29ce484222325n;
  #pending = "";
  #lines = 0;

  constructor(options: { print?: (line: string) => void } = {}) {
    this.#print = options.print;
  }

  add(now: number, text: string): void {
    const line = `${stamp(now)} ${text}`;
    this.#lines++;
    this.#pending += line;
    if (this.#pending.length > 4096) this.#digest();
    this.#tail.push(line);
    if (this.#tail.length > TAIL) this.#tail.shift();
    this.#print?.(line);
  }

  tail(): string[] {
    return [...this.#tail];
  }

  hash(): string {
    this.#digest();
    return `${this.#lines}-${this.#hash.toString(16)}`;
  }

  #digest(): void {
    this.#hash = BigInt(Bun.hash(this.#pending, this.#hash));
    this.#pending = "";
  }
}

/** Virtual time for people: hours, minutes, seconds and milliseconds since the beginning. */
function stamp(now: number): string {
  const ms = now % 1000;
  const seconds = Math.floor(now / 1000);
  const part = (value: number, width = 2) => String(value).padStart(width, "0");
  return `${part(Math.floor(seconds / 3600), 3)}:${part(Math.floor(seconds / 60) % 60)}:${part(seconds % 60)}.${part(ms, 3)}`;
}
