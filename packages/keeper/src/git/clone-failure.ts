import { type CommandState, HoldfastError } from "@holdfast/protocol";

const reasons: { reason: string; says: RegExp; hint: string }[] = [
  {
    reason: "authentication",
    says: /authentication failed|could not read (username|password)|terminal prompts disabled|permission denied|returned error: 40[13]/i,
    hint: "give `credentials` that may read the repository, such as a token as the password",
  },
  {
    reason: "not_found",
    says: /not found|does not (exist|appear to be)|remote branch .* not found|couldn't find remote ref/i,
    hint: "check the URL and the branch; a private repository may say the same to whoever has no credentials",
  },
  {
    reason: "network",
    says: /could not resolve host|connection (refused|timed out|reset)|unable to access|network is unreachable|early eof/i,
    hint: "check that the sandbox's network reaches the host",
  },
];

/** Why a clone failed, from how git ended and what it said last. */
export function cloneFailure(state: CommandState): HoldfastError {
  const { commandId } = state;
  if (state.status !== "exited") {
    return new HoldfastError("git_failed", `the clone was lost with its instance (${state.status})`, {
      hint: "clone again, under a new commandId: nothing half-made is left",
      retryable: true,
      details: { reason: "lost", commandId },
    });
  }
  const said = lastLines(state.stderr);
  const details = { commandId, exitCode: state.exitCode, stderr: said };
  if (state.timedOut || state.cancelled) {
    const reason = state.timedOut ? "timeout" : "cancelled";
    const hint = "give it more time, or clone less of it: `depth`, `sparse`";
    return new HoldfastError("git_failed", `the clone was ended: ${reason}`, {
      hint,
      details: { ...details, reason },
    });
  }
  const known = reasons.find(({ says }) => says.test(said));
  return new HoldfastError("git_failed", `git could not clone: ${said.split("\n").at(-1) ?? ""}`, {
    hint: known?.hint ?? "details.stderr has what git said",
    details: { ...details, reason: known?.reason ?? "other" },
  });
}

/** Without progress, of which only the last state of each line was ever to be seen. */
function lastLines(stderr: string): string {
  const lines = stderr.split("\n").map((line) => line.split("\r").at(-1) ?? "");
  return lines
    .filter((line) => line.trim() !== "")
    .slice(-10)
    .join("\n");
}
