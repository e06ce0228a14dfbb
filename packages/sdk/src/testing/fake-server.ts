import type { Policy, Sandbox } from "@holdfast/protocol";
import { HoldfastError } from "@holdfast/protocol/errors";
import { encodeFrame } from "@holdfast/protocol/log-frames";
import { asResponse, commandState, processOf, streamOf } from "./fake-answers.ts";
import { FakeLifecycle } from "./fake-lifecycle.ts";
import { fakeProvider, fakeSweep, leaseOf } from "./fake-operations.ts";
import { FakePorts } from "./fake-ports.ts";
import { FakeRun } from "./fake-run.ts";

/**
 * The API of one server, in memory, for tests of clients: `fetch` is its whole surface. Programs are real and run on
 * this machine. The faults are what a client must survive: an answer that is lost after the work was done, a server
 * that is away, a log connection that is cut.
 */
export class FakeServer {
  readonly sandboxes = new Map<string, Sandbox>();
  /** By sandbox id; a deleted one's stays. */
  readonly lifecycles = new Map<string, FakeLifecycle>();
  readonly #ports = new Map<string, FakePorts>();
  readonly runs = new Map<string, FakeRun>();
  readonly requests: string[] = [];
  readonly token = "t0ken";
  readonly faults = {
    loseAnswers: 0,
    refuse: 0,
    cutLogsAfterBytes: Number.POSITIVE_INFINITY,
    deletingFor: 0,
    /** How long an exec is on its way. */
    execArrivesAfterMs: 0,
    /** Requests whose path ends like this are never answered. */
    deafTo: undefined as string | undefined,
  };
  readonly #byKey = new Map<string, string>();
  readonly #deleted: Sandbox[] = [];

  readonly fetch = async (url: string, init: RequestInit = {}): Promise<Response> => {
    const request = new Request(url, init);
    const path = new URL(url).pathname;
    this.requests.push(`${request.method} ${path}`);
    if (this.faults.refuse > 0) {
      this.faults.refuse--;
      throw Object.assign(new TypeError("fetch failed"), { code: "ECONNREFUSED" });
    }
    const response = await this.answer(request);
    if (this.faults.loseAnswers > 0 && request.method !== "GET") {
      this.faults.loseAnswers--;
      throw new TypeError("the socket was closed");
    }
    return response;
  };

  /** Ends every program that a test left running. */
  async close(): Promise<void> {
    for (const run of this.runs.values()) run.kill();
    await Promise.all([...this.runs.values()].map((run) => run.ended));
  }

  /** For a real socket: `Bun.serve({ fetch: (request) => fake.answer(request) })`. */
  answer(request: Request): Promise<Response> {
    const { deafTo } = this.faults;
    if (deafTo !== undefined && request.url.endsWith(deafTo)) return new Promise(() => undefined);
    return this.#handle(request).catch(asResponse);
  }

  async #handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (request.headers.get("Authorization") !== `Bearer ${this.token}`) {
      throw new HoldfastError("unauthenticated", "the token is missing or wrong");
    }
    const [, , root, id, ...rest] = url.pathname.split("/").map(decodeURIComponent);
    if (root !== "sandboxes") return this.#forOperator(url, request);
    if (id === undefined) return request.method === "GET" ? this.#list(url) : this.#create(request);
    if (id === "by-name") return this.#ensure(rest[0] ?? "", await request.json());
    const sandbox = this.#find(id, rest[0] === "events" ? this.#deleted : []);
    const answer = await this.#about(sandbox, rest, request);
    answer.headers.set("Holdfast-Generation", String(sandbox.generation));
    answer.headers.set("Holdfast-Continuity", sandbox.continuity);
    return answer;
  }

  async #about(sandbox: Sandbox, rest: string[], request: Request): Promise<Response> {
    const [surface, id, ...action] = rest;
    const condition = request.headers.get("If-Generation");
    if (condition !== null && Number(condition) !== sandbox.generation) {
      throw new HoldfastError("state_lost", "the sandbox is another generation", { started: "no" });
    }
    const lifecycle = this.#lifecycleOf(sandbox);
    const answer = await lifecycle.answer(rest, request);
    if (answer !== undefined) return answer;
    if (surface === undefined)
      return request.method === "DELETE" ? this.#delete(sandbox) : Response.json(sandbox);
    if (surface === "start" || surface === "stop") {
      sandbox.state = surface === "start" ? "running" : "stopped";
      return Response.json(sandbox);
    }
    if (surface === "ports") return this.#portsOf(sandbox).answer(sandbox.id, id, request);
    if (sandbox.state === "stopped")
      throw new HoldfastError("wrong_state", `sandbox ${sandbox.name} is stopped`);
    if (request.method !== "GET") lifecycle.checkWork(request.headers);
    if (surface === "exec") return this.#exec(await request.json());
    if (id === undefined)
      return request.method === "GET" ? this.#processes() : this.#start(await request.json());
    return this.#aboutRun(this.#run(id), { surface, action: action.join("/"), request });
  }

  #portsOf({ id }: Sandbox): FakePorts {
    const ports = this.#ports.get(id) ?? new FakePorts();
    this.#ports.set(id, ports);
    return ports;
  }

  async #aboutRun(
    run: FakeRun,
    of: { surface: string; action: string; request: Request },
  ): Promise<Response> {
    const { surface, action, request } = of;
    const query = new URL(request.url).searchParams;
    switch (action) {
      case "":
        return Response.json(surface === "commands" ? commandState(run) : processOf(run));
      case "logs":
        return this.#logs(run, query);
      case "cancel":
      case "kill":
        run.cancelled = true;
        run.kill("SIGKILL");
        await run.ended;
        return Response.json(surface === "commands" ? commandState(run) : processOf(run));
      case "stdin":
        await run.write(new Uint8Array(await request.arrayBuffer()));
        return new Response(null, { status: 204 });
      case "stdin/close":
        await run.closeStdin();
        return new Response(null, { status: 204 });
      case "signal":
        run.kill((await request.json()).signal);
        return new Response(null, { status: 204 });
      case "wait":
        await Promise.race([run.ended, Bun.sleep(Number(query.get("timeoutMs")))]);
        return Response.json(processOf(run));
      case "wait-for-port":
        return Response.json({
          port: Number(query.get("port")),
          listening: true,
          status: processOf(run).status,
        });
      default:
        throw new HoldfastError("not_found", `no route ${action}`);
    }
  }

  async #exec(body: ExecBody): Promise<Response> {
    await Bun.sleep(this.faults.execArrivesAfterMs);
    const run = this.#attachOrRun(body.commandId, body);
    const input =
      typeof body.stdin === "string" ? body.stdin : Buffer.from(body.stdin?.base64 ?? "", "base64");
    if (run.nextOffset === 0 && run.ending === undefined)
      await run.write(Buffer.from(input)).catch(() => undefined);
    await run.closeStdin();
    await Promise.race([run.ended, Bun.sleep(body.yieldMs ?? 2 ** 31 - 1)]);
    return Response.json(commandState(run));
  }

  async #start(body: StartBody): Promise<Response> {
    return Response.json(processOf(this.#attachOrRun(body.processId, body)), { status: 201 });
  }

  #attachOrRun(id: string, body: { command: string | string[]; env?: Record<string, string> }): FakeRun {
    const known = this.runs.get(id);
    const request = JSON.stringify(body);
    if (known !== undefined && known.request !== request)
      throw new HoldfastError("already_exists", `${id} is taken`);
    if (known !== undefined) return known;
    if (Array.isArray(body.command) && Bun.which(body.command[0] ?? "") === null) {
      throw new HoldfastError("invalid_argument", `there is no program ${body.command[0]}`, {
        started: "no",
      });
    }
    const run = new FakeRun({ id, request, command: body.command, env: body.env ?? {} });
    this.runs.set(id, run);
    return run;
  }

  /** Frames from an offset; cut after a number of bytes, if that fault is set. */
  #logs(run: FakeRun, query: URLSearchParams): Response {
    const follow = query.get("follow") === "true";
    const cutAt = this.faults.cutLogsAfterBytes;
    const since = Number(query.get("since") ?? 0);
    const generate = async function* (): AsyncGenerator<Uint8Array> {
      let sent = 0;
      for (let index = 0; ; index++) {
        while (index >= run.events.length && follow) await run.changed();
        const event = run.events[index];
        if (event === undefined) return;
        if ("bytes" in event && event.offset + event.bytes.length <= since) continue;
        const frame = encodeFrame(event);
        if (sent + frame.length > cutAt) {
          yield frame.subarray(0, Math.max(0, cutAt - sent));
          await Bun.sleep(5); // what was sent must leave: a body that fails in the same breath is never sent at all
          throw new Error("the connection was cut");
        }
        sent += frame.length;
        yield frame;
        if (event.type === "exit") return;
      }
    };
    return new Response(streamOf(generate()));
  }

  async #forOperator(url: URL, request: Request): Promise<Response> {
    if (url.pathname === "/v1/admin/sweep")
      return Response.json({ ...fakeSweep, dryRun: url.searchParams.get("dryRun") === "true" });
    if (url.pathname === "/v1/admin/abandon") {
      const { sandbox, reason } = await request.json();
      const abandoned = this.#find(sandbox, []);
      this.#lifecycleOf(abandoned).record("abandoned", { reason });
      return Response.json(abandoned);
    }
    if (url.pathname === "/v1/providers") return Response.json({ providers: [fakeProvider] });
    // In an order that says nothing, as that of the server's own ids.
    if (url.pathname === "/v1/leases")
      return Response.json({ leases: [...this.sandboxes.values()].map(leaseOf).reverse() });
    throw new HoldfastError("not_found", `no route ${url.pathname}`);
  }

  #lifecycleOf(sandbox: Sandbox): FakeLifecycle {
    const lifecycle = this.lifecycles.get(sandbox.id) ?? new FakeLifecycle(sandbox);
    this.lifecycles.set(sandbox.id, lifecycle);
    return lifecycle;
  }

  async #create(request: Request): Promise<Response> {
    const { name, labels, ...asked } = await request.json();
    const key = request.headers.get("Idempotency-Key") ?? crypto.randomUUID();
    const known = this.sandboxes.get(this.#byKey.get(key) ?? "");
    if (known === undefined && [...this.sandboxes.values()].some((sandbox) => sandbox.name === name)) {
      throw new HoldfastError("already_exists", `a sandbox named ${name} exists already`);
    }
    const sandbox = known ?? this.#add({ name, labels, asked });
    this.#byKey.set(key, sandbox.id);
    return Response.json(sandbox, { status: 201 });
  }

  #ensure(name: string, body: { labels?: Record<string, string> }): Response {
    const known = [...this.sandboxes.values()].find((sandbox) => sandbox.name === name);
    const { labels, ...asked } = body;
    if (known !== undefined && JSON.stringify(known.spec) !== JSON.stringify(splitPolicy(asked).spec)) {
      throw new HoldfastError("spec_conflict", `${name} has another spec`);
    }
    return Response.json(known ?? this.#add({ name, labels, asked }));
  }

  #add(of: { name?: string; labels?: Record<string, string> | undefined; asked: object }): Sandbox {
    const { policy, spec } = splitPolicy(of.asked);
    const number = this.sandboxes.size + 1;
    const sandbox: Sandbox = {
      id: `sbx_${String(number).padStart(2, "0")}${"abcdefgh".slice(number % 8)}`,
      name: of.name ?? `box-${number}`,
      state: "running",
      generation: 1,
      continuity: "fresh",
      provider: "fake",
      spec,
      labels: of.labels ?? {},
      limits: { state: "none" },
      ...policy,
      createdAt: new Date().toISOString(),
      startedAt: new Date().toISOString(),
      lastUsedAt: new Date().toISOString(),
      reapsAt: new Date(Date.now() + policy.lifetimeSeconds * 1000).toISOString(),
      heldAwakeBy: [],
      openTurns: 0,
    };
    this.sandboxes.set(sandbox.id, sandbox);
    return sandbox;
  }

  #list(url: URL): Response {
    const state = url.searchParams.get("state");
    const all = [...this.sandboxes.values()].filter((sandbox) => state === null || sandbox.state === state);
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const to = from + Math.min(Number(url.searchParams.get("limit") ?? 100), 2); // small pages: paging is what is tested
    return Response.json({
      sandboxes: all.slice(from, to),
      ...(to < all.length && { nextCursor: String(to) }),
    });
  }

  #delete(sandbox: Sandbox): Response {
    if (this.faults.deletingFor-- > 0) return Response.json({ state: "deleting" }, { status: 202 });
    this.#lifecycleOf(sandbox).record("deleted");
    this.sandboxes.delete(sandbox.id);
    this.#deleted.push(sandbox);
    return new Response(null, { status: 204 });
  }

  #find(id: string, also: readonly Sandbox[]): Sandbox {
    const isMeant = (sandbox: Sandbox): boolean => sandbox.id === id || sandbox.name === id;
    const found = [...this.sandboxes.values(), ...also].find(isMeant);
    if (found !== undefined) return found;
    if (this.#deleted.some(isMeant)) throw new HoldfastError("gone", `sandbox ${id} was deleted`);
    throw new HoldfastError("not_found", `there is no sandbox ${id}`);
  }

  #run(id: string): FakeRun {
    const run = this.runs.get(id);
    if (run === undefined) throw new HoldfastError("not_found", `there is no ${id}`);
    return run;
  }

  #processes(): Response {
    const runs = [...this.runs.values()].filter((run) => run.request.includes('"processId"'));
    return Response.json({ processes: runs.map(processOf) });
  }
}

const defaults: Policy = {
  persistent: true,
  lifetimeSeconds: 1800,
  onIdle: "stop",
  filesystem: "persistent",
  maxLifetimeSeconds: null,
  turnTimeoutSeconds: 3600,
  persistAcrossRestarts: true,
};

function splitPolicy(asked: object): { policy: Policy; spec: Sandbox["spec"] } {
  const entries = Object.entries(asked);
  const policy = entries.filter(([name]) => name in defaults);
  const spec = entries.filter(([name]) => !(name in defaults));
  return { policy: { ...defaults, ...Object.fromEntries(policy) }, spec: Object.fromEntries(spec) };
}

interface ExecBody {
  commandId: string;
  command: string | string[];
  stdin?: string | { base64: string };
  yieldMs?: number;
}

interface StartBody {
  processId: string;
  command: string | string[];
}
