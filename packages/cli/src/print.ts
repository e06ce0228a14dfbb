/** Writes everything before it resolves: a `process.exit` right after cuts nothing off. */
export function write(stream: NodeJS.WriteStream, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()));
  });
}

export function print(text: string): Promise<void> {
  return write(process.stdout, text).catch(ignoreBrokenPipe);
}

export function printJson(value: unknown): Promise<void> {
  return print(`${JSON.stringify(value, null, 2)}\n`);
}

export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}

function ignoreBrokenPipe(error: unknown): void {
  if (!isBrokenPipe(error)) throw error;
}
