export interface ServerSentEvent {
  /** `message` where the server gives no name. */
  event: string;
  data: string;
  /** Empty where the server gives none. */
  id: string;
}

/** Puts together what comes in pieces of any size. Comments, which keep a silent connection alive, are left out. */
export class ServerSentEvents {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** The events that are whole with this piece. */
  push(bytes: Uint8Array): ServerSentEvent[] {
    const blocks = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(parsed).filter(({ data }) => data !== "");
  }
}

function parsed(block: string): ServerSentEvent {
  const fields = block.split("\n").map((line) => /^(\w+): ?(.*)$/.exec(line));
  const valuesOf = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ""] : []));
  return {
    event: valuesOf("event").at(-1) ?? "message",
    data: valuesOf("data").join("\n"),
    id: valuesOf("id").at(-1) ?? "",
  };
}
