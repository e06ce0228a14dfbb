import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A real git server over HTTP with basic authentication: git's own `http-backend` behind a socket. */
export class TestGitServer implements AsyncDisposable {
  readonly password = `s3cret-${crypto.randomUUID()}`;
  readonly dir = mkdtempSync(join(tmpdir(), "holdfast-git-"));
  /** What a request waits for before it is answered. */
  held: Promise<void> = Promise.resolve();
  /** Where every request is sent on to instead. */
  redirectTo: string | undefined;
  asked = 0;
  readonly authorizations = new Set<string>();
  readonly #server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.#answer(request) });

  get origin(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** Makes a repository with these files, in one commit each time it is called; gives its URL. */
  commit(name: string, files: Record<string, string>): string {
    const work = join(this.dir, `${name}-work`);
    const bare = join(this.dir, `${name}.git`);
    mkdirSync(work, { recursive: true });
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(join(work, path, ".."), { recursive: true });
      writeFileSync(join(work, path), content);
    }
    git(work, ["init", "--quiet", "--initial-branch=main"]);
    git(work, ["add", "--all"]);
    git(work, ["commit", "--quiet", "--allow-empty", "-m", "one more"]);
    git(this.dir, ["init", "--quiet", "--bare", "--initial-branch=main", bare]);
    git(bare, ["config", "uploadpack.allowFilter", "true"]);
    git(work, ["push", "--quiet", bare, "HEAD:main"]);
    return `${this.origin}/${name}.git`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #answer(request: Request): Promise<Response> {
    this.asked += 1;
    await this.held;
    const { pathname, search } = new URL(request.url);
    if (this.redirectTo !== undefined) return Response.redirect(this.redirectTo + pathname + search, 302);
    const authorization = request.headers.get("Authorization");
    if (authorization !== null) this.authorizations.add(authorization);
    if (authorization !== `Basic ${btoa(`agent:${this.password}`)}`)
      return new Response("who are you?", {
        status: 401,
        headers: { "WWW-Authenticate": 'Basic realm="git"' },
      });
    return this.#backend(request, { pathname, query: search.slice(1) });
  }

  async #backend(request: Request, at: { pathname: string; query: string }): Promise<Response> {
    const header = (name: string) => request.headers.get(name) ?? "";
    const child = Bun.spawn(["git", "http-backend"], {
      stdin: await request.bytes(),
      stdout: "pipe",
      env: {
        PATH: process.env.PATH ?? "",
        GIT_PROJECT_ROOT: this.dir,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: at.pathname,
        QUERY_STRING: at.query,
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: header("Content-Type"),
        HTTP_CONTENT_ENCODING: header("Content-Encoding"),
        GIT_PROTOCOL: header("Git-Protocol"),
      },
    });
    const bytes = Buffer.from(await new Response(child.stdout).arrayBuffer());
    const end = bytes.indexOf("\r\n\r\n");
    const headers = bytes.toString("latin1", 0, end).split("\r\n");
    const status = headers.find((line) => line.startsWith("Status: "))?.slice("Status: ".length, 11) ?? "200";
    const rest = headers.filter((line) => !line.startsWith("Status: "));
    return new Response(bytes.subarray(end + 4), {
      status: Number(status),
      headers: rest.map((line) => line.split(": ") as [string, string]),
    });
  }
}

/** Runs git as somebody, with no settings of this machine. */
export function git(cwd: string, args: readonly string[]): string {
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: "/nonexistent",
    GIT_CONFIG_NOSYSTEM: "1",
    ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@example.com" },
    ...{ GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@example.com" },
  };
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...args], { cwd, env });
  if (exitCode !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  return stdout.toString().trim();
}
