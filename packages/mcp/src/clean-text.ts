/**
 * What a program wrote, as text for a reader that is no terminal. Colours, cursor moves, titles and other control
 * characters are taken out: they cost a model's attention, and would steer the terminal in which its user watches.
 */
export function cleanText(bytes: Uint8Array): string {
  return cleaned(new TextDecoder().decode(bytes));
}

export function cleaned(text: string): string {
  return text.replace(ESCAPES, "").replace(/\r\n?/g, "\n").replace(CONTROLS, "");
}

/** In one line and not too long, for what stands among other things. */
export function shortened(text: string, maxCharacters: number): string {
  const line = cleaned(text).replace(/\s+/g, " ").trim();
  return line.length <= maxCharacters ? line : `${wellFormed(line.slice(0, maxCharacters))}…`;
}

/** Without half a character at its end. */
function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udbff]$/, "");
}

// CSI; OSC; DCS, SOS, PM and APC; the short ones. Each part ends before the next ESC, so a match never looks twice.
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[PX^_][^\u001b]*\u001b\\|[ -/]*[0-~])/g;

// All but tab and line feed; and what changes the direction of text, which can hide what it says.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
