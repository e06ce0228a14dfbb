const codes = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const;

export type Colour = keyof typeof codes;

/** Colours are for eyes: a terminal that wants them (https://no-color.org), and nothing else. */
export function paint(colour: Colour, text: string, stream: { isTTY?: boolean } = process.stdout): string {
  const wanted = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return wanted ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text;
}

/** What comes from a sandbox may hold anything: no control character of it may steer the terminal or break a row. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}
