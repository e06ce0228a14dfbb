import { busyboxTar, debianTar, shellLessTar } from "./docker-images.ts";

/** `busybox` is one static program; `debian` has bash and coreutils with their libraries; `shell-less` has one program. */
export type TestImage = "busybox" | "debian" | "shell-less";

const tars = { busybox: busyboxTar, debian: debianTar, "shell-less": shellLessTar } as const;
const JSON_TYPE = { "Content-Type": "application/json" };

/** What a test asks of a daemon by itself, past the provider. */
export class DaemonClient {
  readonly images: Readonly<Record<TestImage, string>> = {
    busybox: "hf-test/busybox:latest",
    debian: "hf-test/debian:latest",
    "shell-less": "hf-test/shell-less:latest",
  };
  /** As in DOCKER_HOST. */
  readonly host: string;

  constructor(host: string) {
    this.host = host;
  }

  async importAll(): Promise<void> {
    for (const image of Object.keys(tars) as TestImage[]) await this.#import(this.images[image], image, []);
  }

  async importImage(name: string, from: TestImage, changes: readonly string[]): Promise<string> {
    await this.#import(`hf-test/${name}:latest`, from, changes);
    return `hf-test/${name}:latest`;
  }

  async ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const json = body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_TYPE };
    const text = await this.#send(method, path, json);
    return text.trim() === "" ? undefined : JSON.parse(text);
  }

  async #import(name: string, from: TestImage, changes: readonly string[]): Promise<void> {
    const [repo = "", tag = ""] = name.split(":");
    const query = new URLSearchParams([
      ...[
        ["fromSrc", "-"],
        ["repo", repo],
        ["tag", tag],
      ],
      ...changes.map((change) => ["changes", change]),
    ]);
    const body = await Bun.file(await tars[from]()).arrayBuffer();
    await this.#send("POST", `/images/create?${query}`, {
      body,
      headers: { "Content-Type": "application/x-tar" },
    });
  }

  async #send(method: string, path: string, init: RequestInit): Promise<string> {
    const response = await fetch(`http://docker${path}`, {
      ...init,
      method,
      unix: this.host.replace("unix://", ""),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text;
  }
}
