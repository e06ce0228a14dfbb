/**
 * Makes our terminal pass everything through, in both directions; returns what undoes it, or nothing if there is no
 * terminal. By `stty`, because the runtime's own raw mode still turns a line feed that is written into carriage return
 * and line feed, and a full-screen program means its line feeds as they are.
 */
export function makeRaw(): (() => void) | undefined {
  if (!process.stdin.isTTY) return undefined;
  const before = stty("-g").trim();
  stty("raw", "-echo");
  return () => void stty(before);
}

function stty(...args: string[]): string {
  const { stdout, stderr, success } = Bun.spawnSync(["stty", ...args], { stdin: "inherit" });
  if (!success) throw new Error(`the terminal could not be set up: stty ${args.join(" ")}: ${stderr}`);
  return String(stdout);
}
