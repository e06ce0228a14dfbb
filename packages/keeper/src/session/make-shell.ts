import { HoldfastError, SessionCarries, type SessionShellName } from "@holdfast/protocol";
import type { Engine } from "../engine/engine.ts";
import { environmentOf } from "../engine/environment.ts";
import type { Stream } from "../engine/log-writer.ts";
import { BashShell } from "./bash-shell.ts";
import type { SessionFacts } from "./checkpoint.ts";
import { nearestExisting } from "./cwd.ts";
import type { SessionShell } from "./session-shell.ts";
import { ShShell } from "./sh-shell.ts";

/** In the environment of everything that a session's shell starts: its end is found by it. */
export const SESSION_VARIABLE = "HOLDFAST_SESSION";

/** What of a shell's state can be brought back after its death. */
export const carriesOf: Record<SessionShellName, readonly SessionCarries[]> = {
  bash: SessionCarries.options,
  sh: ["cwd", "variables", "options", "umask", "traps"],
};

/** The shell that was asked for, or the best there is. */
export function chooseShell(engine: Engine, wanted: SessionShellName | undefined): SessionShellName {
  const best = engine.shell?.name;
  const chosen = wanted ?? best;
  if (best === undefined || chosen === undefined || (chosen === "bash" && best !== "bash")) {
    throw new HoldfastError("unsupported", `this sandbox has no ${wanted ?? "shell, neither bash nor sh"}`, {
      hint: best === undefined ? "use exec with an array of arguments" : "leave out `shell`, or install bash",
      started: "no",
    });
  }
  return chosen;
}

/** Ours, beside the user's: the value of the engine's marker in the shell's own environment. No command's id has a colon. */
export function shellMarkerOf(facts: SessionFacts): string {
  return `session:${facts.sessionId}`;
}

export function makeShell(options: {
  engine: Engine;
  facts: SessionFacts;
  dir: string;
  output: (stream: Stream, bytes: Uint8Array) => void;
}): SessionShell {
  const { engine, facts, dir, output } = options;
  const { boot } = engine;
  const layers = [facts.env, { [SESSION_VARIABLE]: facts.sessionId }];
  const env = environmentOf(boot, { id: shellMarkerOf(facts), layers });
  const injected = Object.keys(boot.env).filter((name) => name in env && facts.env?.[name] === undefined);
  const path = shellPath(engine, facts.shell);
  const parts = { path, dir, cwd: nearestExisting(facts.startCwd), env, injected, output };
  return facts.shell === "bash"
    ? new BashShell({ ...parts, marker: shellMarkerOf(facts) })
    : new ShShell(parts);
}

export function shellPath(engine: Engine, name: SessionShellName): string {
  const { env } = engine.boot;
  const path =
    name === engine.shell?.name ? engine.shell.path : Bun.which(name, { PATH: env.PATH ?? "/usr/bin:/bin" });
  if (path === null) throw new HoldfastError("unavailable", `the sandbox has no ${name}`, { started: "no" });
  return path;
}
