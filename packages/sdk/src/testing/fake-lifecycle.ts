import type { Claim, Sandbox, SandboxEvent, Turn, Why } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { streamOf } from "./fake-answers.ts";

/** What the fake server knows of how one sandbox lives and ends. */
export class FakeLifecycle {
  readonly sandbox: Sandbox;
  readonly events: SandboxEvent[] = [];
  readonly turns = new Map<string, Turn>();
  claim: (Claim & { token: string; renewals: number }) | undefined;
  /** The `Holdfast-Turn` of each piece of work. */
  readonly workTurns: (string | null)[] = [];
  #fence = 0;
  #changed = Promise.withResolvers<void>();

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
    this.record("created", { by: "test" });
  }

  record(type: string, detail: Record<string, unknown> = {}): void {
    this.events.push({ seq: this.events.length + 1, at: new Date().toISOString(), type, detail });
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Breaks the connections of those who follow the timeline. */
  cut(): void {
    this.#changed.reject(new Error("the connection was cut"));
    this.#changed = Promise.withResolvers();
  }

  /** Refuses work under another claim than the one that holds. */
  checkWork(headers: Headers): void {
    this.workTurns.push(headers.get("Holdfast-Turn"));
    const token = headers.get("Holdfast-Claim");
    if (token !== null && token !== this.claim?.token)
      throw new HoldfastError("claim_lost", "this claim is over");
    if (token === null && this.claim !== undefined)
      throw new HoldfastError("claim_held", `${this.claim.holder} holds this sandbox`);
  }

  /** `undefined`: not one of these routes. */
  async answer(rest: string[], request: Request): Promise<Response | undefined> {
    const [surface, id, action] = rest;
    if (surface === undefined && request.method === "PATCH") return this.#update(await request.json());
    if (surface === "touch") return this.#update({ lastUsedAt: new Date().toISOString() });
    if (surface === "release") return this.#release(request.headers);
    if (surface === "why") return Response.json(whyOf(this.sandbox));
    if (surface === "events") return this.#timeline(new URL(request.url).searchParams);
    if (surface === "turns") return id === undefined ? this.#begin(await request.json()) : this.#end(id);
    if (surface !== "claims") return undefined;
    if (id === undefined) return this.#claimIt(await request.json());
    return this.#aboutClaim(action, request);
  }

  #update(change: Partial<Sandbox>): Response {
    return Response.json(Object.assign(this.sandbox, change));
  }

  #release(headers: Headers): Response {
    const turnId = headers.get("Holdfast-Turn");
    if (turnId !== null) this.#end(turnId);
    if (headers.get("Holdfast-Claim") === this.claim?.token) this.claim = undefined;
    return Response.json(this.sandbox);
  }

  #begin({ turnId }: { turnId: string }): Response {
    const turn = this.turns.get(turnId) ?? { turnId, startedAt: new Date().toISOString() };
    this.turns.set(turnId, turn);
    this.sandbox.openTurns = this.turns.size;
    delete this.sandbox.reapsAt;
    return Response.json(turn, { status: 201 });
  }

  #end(turnId: string): Response {
    const turn = this.turns.get(turnId);
    if (turn === undefined) throw new HoldfastError("not_found", `there is no turn ${turnId}`);
    turn.endedAt ??= new Date().toISOString();
    this.sandbox.openTurns = [...this.turns.values()].filter(({ endedAt }) => endedAt === undefined).length;
    if (this.sandbox.openTurns === 0 && !this.sandbox.persistent) this.sandbox.state = "deleting";
    return Response.json(turn);
  }

  #claimIt(asked: { holder: string; takeover?: boolean }): Response {
    if (this.claim !== undefined && asked.takeover !== true)
      throw new HoldfastError("claim_held", `${this.claim.holder} holds this sandbox`);
    const fence = ++this.#fence;
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    this.claim = {
      claimId: `clm${fence}`,
      holder: asked.holder,
      fence,
      token: `token${fence}`,
      expiresAt,
      renewals: 0,
    };
    const { renewals: _, ...answer } = this.claim;
    return Response.json(answer, { status: 201 });
  }

  #aboutClaim(action: string | undefined, request: Request): Response {
    if (this.claim === undefined || request.headers.get("Holdfast-Claim") !== this.claim.token)
      throw new HoldfastError("claim_lost", "this claim is over");
    if (action === "renew") {
      this.claim.renewals++;
      return Response.json(this.claim);
    }
    this.claim = undefined;
    return new Response(null, { status: 204 });
  }

  #timeline(query: URLSearchParams): Response {
    const since = Number(query.get("since") ?? 0);
    if (query.get("follow") === "true") return new Response(streamOf(this.#follow(since)));
    return Response.json({ events: this.events.filter(({ seq }) => seq > since) });
  }

  async *#follow(since: number): AsyncGenerator<Uint8Array> {
    const bytes = (text: string) => new TextEncoder().encode(text);
    yield bytes(": keep-alive\n\n");
    for (let next = since; ; next++) {
      while (next >= this.events.length) await this.#changed.promise;
      const event = this.events[next];
      yield bytes(`id: ${event?.seq}\ndata: ${JSON.stringify(event)}\n\n`);
      if (event?.type === "deleted") return yield bytes("event: end\ndata: {}\n\n");
    }
  }
}

function whyOf({ id, name, state, generation, onIdle, lastDeath }: Sandbox): Why {
  return {
    sandbox: { id, name, state, generation },
    alive: ["somebody used it 5 s ago"],
    heldAwakeBy: ["command c1 is running"],
    onIdle,
    openTurns: [],
    debts: [],
    ...(lastDeath !== undefined && { lastDeath }),
    next: "it is stopped once it was idle for 1800 s",
  };
}
