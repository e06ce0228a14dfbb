export interface Page {
  readonly path: string;
  readonly title: string;
}

/** What a language model needs to use this server, and where the rest is. In the form of llmstxt.org. */
export function llmsText({ origin, pages }: { origin: string; pages: readonly Page[] }): string {
  const links = pages.map(({ path, title }) => `- [${title}](${origin}${path})`);
  return `# Holdfast

> A self-hosted sandbox runtime for AI agents. A sandbox is still there on the next turn, with its files, shells and
> running processes, also after a restart of the server; and it is really gone when nobody wants it, with evidence.

This server is at ${origin}. Calls under /v1 need \`Authorization: Bearer TOKEN\`; the token is in the file \`token\` in
the server's data dir, or in HOLDFAST_TOKEN.

How to choose: \`exec\` for one command (stateless), a process for what goes on (a dev server, a long build), a session
for a shell that keeps its directory and variables, a terminal for a program that wants a screen.

What to know first:
- A sandbox is addressed by its id or its name. Get-or-create by name finds it again on the next turn.
- An idle sandbox is stopped after \`lifetimeSeconds\`; its files stay, and the next call starts it again. Releasing it
  leaves it running; deleting it removes its files.
- Every answer has a \`generation\`. Send it back as \`If-Generation\` to be told (\`409 state_lost\`) instead of continuing
  in a sandbox whose processes are gone.
- Every command has an id. The same id sent again attaches to the first run, and never runs twice.
- A command that exits with 1 is a successful call. Errors have \`code\`, \`message\`, \`hint\` and \`retryable\`: do what the
  hint says.
- \`GET /v1/sandboxes/{id}/why\` says why a sandbox lives, when it will be reaped, and why it last died.

## Use it
### TypeScript
\`\`\`ts
import { Sandbox } from "holdfast";

await using sandbox = await Sandbox.getOrCreate({ name: "issue-42" });   // disposing releases it; it stays
const { stdout, exitCode } = await sandbox.exec("npm test", { cwd: "/workspace", timeoutMs: 60_000 });
const server = await sandbox.startProcess("npm run dev");
await server.waitForPort(3000);
\`\`\`

### Command line
\`\`\`sh
export HOLDFAST_URL=${origin}
holdfast create --name issue-42
holdfast exec issue-42 -- 'cd /workspace && npm test'
holdfast exec -d issue-42 -- npm run dev      # in the background; prints the process's id
holdfast why issue-42
\`\`\`

### HTTP
\`\`\`sh
curl -X PUT -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d '{}' \\
  ${origin}/v1/sandboxes/by-name/issue-42
curl -X POST -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"command":"npm test","cwd":"/workspace","timeoutMs":60000,"maxOutputBytes":20000}' \\
  ${origin}/v1/sandboxes/issue-42/exec
\`\`\`

### MCP
\`holdfast mcp\` on stdio, or ${origin}/mcp over HTTP with the token: tools \`sandbox_create\`, \`sandbox_exec\`,
\`sandbox_process_start\`, \`sandbox_session_exec\`, \`sandbox_file_read\`, \`sandbox_why\` and others. Output is bounded, with
counts and a cursor to go on.

## Reference
- [OpenAPI document](${origin}/openapi.json): every route and shape
- [API page](${origin}/docs): the same for people, to try out
- [Skill](${origin}/docs/skill.md): how an agent uses Holdfast well

## Docs
${links.join("\n")}
`;
}
