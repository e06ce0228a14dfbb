/**
 * A name of any bytes for an answer: as text, and where that is not UTF-8, exactly, too. It is given as latin1, one
 * byte to a character.
 */
export function byteName<Name extends "path" | "from">(name: Name, latin1: string): Record<Name, string> {
  const bytes = Buffer.from(latin1, "latin1");
  const text = bytes.toString();
  const exact = Buffer.from(text).equals(bytes) ? {} : { [`${name}Base64`]: bytes.toString("base64") };
  return { [name]: text, ...exact } as Record<Name, string>;
}
