import { PROTOCOL_VERSION } from "@holdfast/protocol";
import type { App } from "../app.ts";
import { nameSchemas } from "./schema-names.ts";

/** Serves the description of every route, made from the schemas that check them. */
export function serveOpenApi(app: App): void {
  nameSchemas();
  app.openAPIRegistry.registerComponent("securitySchemes", "token", { type: "http", scheme: "bearer" });
  // Made once, by the first who asks: by then every route is there.
  let text: string | undefined;
  app.get("/openapi.json", (c) => {
    text ??= JSON.stringify(documentOf(app));
    return c.body(text, 200, { "Content-Type": "application/json" });
  });
}

function documentOf(app: App): object {
  const document = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Holdfast",
      version: PROTOCOL_VERSION,
      description: "Sandboxes for agents that are still there.",
    },
    security: [{ token: [] }],
    tags: [...new Set([SANDBOXES, ...Object.values(groups)])].map((name) => ({ name })),
  });
  for (const [path, item] of Object.entries(document.paths ?? {}))
    for (const method of ["get", "put", "post", "patch", "delete"] as const)
      if (item[method] !== undefined) item[method].tags = [groupOf(path)];
  return document;
}

const SANDBOXES = "Sandboxes";

/** What a page groups routes by: the word after the sandbox, or the first. */
const groups: Readonly<Record<string, string>> = {
  exec: "Commands",
  commands: "Commands",
  processes: "Processes",
  sessions: "Sessions",
  terminals: "Terminals",
  files: "Files",
  watch: "Files",
  git: "Git",
  ports: "Ports",
  snapshots: "Snapshots and forks",
  fork: "Snapshots and forks",
  turns: "Turns and claims",
  claims: "Turns and claims",
  events: "Explained",
  why: "Explained",
  providers: "Operator",
  leases: "Operator",
  admin: "Operator",
  healthz: "Operator",
  readyz: "Operator",
};

function groupOf(path: string): string {
  const [first = "", , word] = path.replace(/^\/(v1\/)?/, "").split("/");
  return groups[first] ?? groups[word ?? ""] ?? SANDBOXES;
}
