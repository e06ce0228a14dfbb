/** What a person sees when the server is ready. Not a log: it goes to stdout, once. */
export function welcome(facts: {
  url: string;
  previewUrl: string;
  tokenPath: string;
  dataDir: string;
  adopted: number;
  /** What sandboxes are made of here, where that needs to be said. */
  provider: string | undefined;
  /** What a client must be told to find this server, before its command. */
  settings: string;
}): void {
  const found =
    facts.adopted === 0 ? "" : `  found again:  ${count(facts.adopted, "sandbox", "sandboxes")}\n`;
  process.stdout.write(`
Holdfast is ready.
  URL:          ${facts.url}
  previews:     ${facts.previewUrl.replace("://", "://*.")}
  token:        in ${facts.tokenPath}
  data:         ${facts.dataDir}
${facts.provider === undefined ? "" : `  sandboxes in: ${facts.provider}\n`}${found}
Try it, in another terminal:
  ${facts.settings}npx holdfast run -- echo hello from a sandbox
  ${facts.settings}npx holdfast dashboard      # a link for your browser

Ctrl-C stops the server and leaves the sandboxes running.
`);
}

export function goodbye({ running }: { running: readonly string[] }): void {
  if (running.length === 0) {
    process.stdout.write("\nThe server has stopped. No sandbox was running.\n");
    return;
  }
  const names = running.length > 5 ? `${running.slice(0, 5).join(", ")}, …` : running.join(", ");
  process.stdout.write(
    `\nThe server has stopped. ${count(running.length, "sandbox keeps", "sandboxes keep")} running: ${names}\n` +
      "Start it again to use them; `npx holdfast rm NAME` ends one.\n",
  );
}

function count(n: number, one: string, many: string): string {
  return `${n} ${n === 1 ? one : many}`;
}
