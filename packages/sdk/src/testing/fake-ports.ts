import type { ExposePort, Port } from "@holdfast/protocol";

/** Something listens on this one in every sandbox of the fake server. */
const LISTENING = 8080;

/** The exposed ports of one sandbox, in memory. */
export class FakePorts {
  readonly #ports = new Map<number, Port>();

  async answer(sandboxId: string, port: string | undefined, request: Request): Promise<Response> {
    if (request.method === "POST") return this.#expose(sandboxId, (await request.json()) as ExposePort);
    if (request.method === "GET") return Response.json({ ports: this.#list() });
    this.#ports.delete(Number(port));
    return new Response(null, { status: 204 });
  }

  #expose(sandboxId: string, { port, wake = false, public: isPublic = false }: ExposePort): Response {
    const url = `http://${port}-${sandboxId}${isPublic ? "" : "-t0ken"}.localhost:4751/`;
    const exposed = { port, url, createdAt: new Date().toISOString(), wake, public: isPublic };
    this.#ports.set(port, exposed);
    return Response.json(exposed, { status: 201 });
  }

  #list() {
    const exposed = [...this.#ports.values()].map((one) => ({ ...one, listening: one.port === LISTENING }));
    return this.#ports.has(LISTENING) ? exposed : [...exposed, { port: LISTENING, listening: true }];
  }
}
