/** No separators: ids become directory names, host names and parts of URLs. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** 65 bits: two of a million sandboxes get the same one with a chance below 10^-7. */
export function newSandboxId(): string {
  return `sbx${random(13)}`;
}

export function newInstanceId(): string {
  return `ins${random(16)}`;
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
  return Array.from(bytes, (byte) => ALPHABET[byte & 31]).join("");
}
