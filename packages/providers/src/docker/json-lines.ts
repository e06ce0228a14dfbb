/** Splits what comes in pieces of any size at its line ends, and parses each line that is not empty. */
export async function* linesOf<T>(
  pieces: AsyncIterable<Uint8Array>,
  parse: (line: string) => T,
): AsyncGenerator<T, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield parse(line);
  }
  if (rest.trim() !== "") yield parse(rest);
}
