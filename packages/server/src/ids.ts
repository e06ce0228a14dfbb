/** No separators: ids become directory names, host names and parts of URLs. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

type Kind = "sandbox" | "instance" | "turn" | "claim" | "snapshot" | "port" | "secret";

/** 65 bits: two of a million sandboxes get the same one with a chance below 10^-7. */
const lengths: Record<Exclude<Kind, "secret">, [prefix: string, letters: number]> = {
  sandbox: ["sbx", 13],
  instance: ["ins", 16],
  turn: ["turn", 16],
  claim: ["claim", 16],
  // A port's token: 130 bits that fit into a host name's label beside the port and the sandbox.
  port: ["", 26],
  snapshot: ["snap", 13],
};

export function newId(kind: Kind): string {
  if (kind === "secret") return newSecret();
  const [prefix, letters] = lengths[kind];
  return prefix + random(letters);
}

/** One server's run, among those that share a database. */
export function newServerId(): string {
  return `srv${random(16)}`;
}

export function newInstallationId(): string {
  return `hf${random(16)}`;
}

export function newRequestId(): string {
  return `req_${random(16)}`;
}

/** 256 bits, for keepers and for the API token. */
export function newSecret(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
}

function random(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  let text = "";
  for (const byte of bytes) text += ALPHABET[byte & 31];
  return text;
}
