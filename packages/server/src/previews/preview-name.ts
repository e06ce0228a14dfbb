import { timingSafeEqual } from "node:crypto";
import type { ExposedPort } from "@holdfast/core";
import { TOKEN_PARAMETER } from "./cookie.ts";

/** What a visited host name says. */
export interface PreviewName {
  readonly port: number;
  readonly sandboxId: string;
  /** `null`: of a public one. */
  readonly token: string | null;
}

/** `{port}-{sandbox}-{token}`, one label of at most 63 characters, because a certificate's wildcard covers one. */
const LABEL = /^([1-9]\d{0,4})-([a-z0-9]{1,32})(?:-([a-z0-9]{26}))?$/;

/** Where visitors find the previews: `http://localhost:4751`, or an operator's own domain. */
export class PreviewPlace {
  readonly #base: URL;

  constructor(url: string) {
    this.#base = new URL(url);
  }

  /** As visitors see it, also where a proxy ends their TLS. */
  get scheme(): "http" | "https" {
    return this.#base.protocol === "https:" ? "https" : "http";
  }

  urlOf(sandboxId: string, { port, token }: Pick<ExposedPort, "port" | "token">): string {
    const label = [port, sandboxId, ...(token === null ? [] : [token])].join("-");
    return `${this.#base.protocol}//${label}.${this.#base.host}/`;
  }

  /** The same preview without its token in the name: the first visit turns it into a cookie. */
  cookieUrlOf(sandboxId: string, { port, token }: { port: number; token: string }): string {
    return `${this.urlOf(sandboxId, { port, token: null })}?${TOKEN_PARAMETER}=${token}`;
  }

  /** `host` is the request's header. `undefined`: it names no preview of ours. */
  parse(host: string): PreviewName | undefined {
    const name = host.toLowerCase().replace(/:\d{1,5}$/, "");
    const suffix = `.${this.#base.hostname}`;
    if (!name.endsWith(suffix)) return undefined;
    const [, port, sandboxId, token] = LABEL.exec(name.slice(0, -suffix.length)) ?? [];
    if (port === undefined || sandboxId === undefined) return undefined;
    return { port: Number(port), sandboxId, token: token ?? null };
  }
}

/** In constant time for tokens of the same length; the length is no secret. */
export function isToken(given: string | null, wanted: string | null): boolean {
  if (given === null || wanted === null) return given === wanted;
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
