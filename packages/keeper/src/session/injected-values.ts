/**
 * The sandbox's own environment may hold secrets. A value that the session has not changed is not written down with its
 * state: the line keeps the attributes and loses the value, and a rebuilt shell gets it from its environment again.
 */
export class InjectedValues {
  readonly #values = new Map<string, string>();

  /** From the `declare -p` lines of a shell in which nothing has run yet. */
  learn(lines: Buffer): void {
    for (const line of lines.toString("latin1").split("\n")) {
      const [, name, value] = DECLARATION.exec(line) ?? [];
      if (name !== undefined && value !== undefined) this.#values.set(name, value);
    }
  }

  /** The dumped state without them. Only the variables, which come first, are looked at. */
  withoutThem(state: Buffer): Buffer {
    const end = state.indexOf(END_OF_VARIABLES);
    if (end < 0 || this.#values.size === 0) return state;
    // Latin-1 keeps every byte as it is, whatever the text's encoding.
    const lines = state.toString("latin1", 0, end).split("\n");
    const kept = lines.map((line) => {
      const [, name = "", value] = DECLARATION.exec(line) ?? [];
      const injected = value !== undefined && this.#values.get(name) === value;
      return injected ? line.slice(0, line.length - value.length - 1) : line;
    });
    return Buffer.concat([Buffer.from(kept.join("\n"), "latin1"), state.subarray(end)]);
  }
}

// The shells print each variable on a line of its own: a newline inside a value is written as an escape.
const DECLARATION = /^declare -\S+ ([A-Za-z_]\w*)=(.*)$/s;
const END_OF_VARIABLES = "\n#\n";
