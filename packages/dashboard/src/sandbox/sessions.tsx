import type { SandboxInfo } from "holdfast";
import { useNow } from "../clock.ts";
import { age } from "../format.ts";
import { CommandLine } from "../ui/command.tsx";
import { ErrorNote } from "../ui/error-note.tsx";
import { NotRunning } from "./not-running.tsx";
import { useAbout } from "./use-sandbox.ts";

/** Shells that agents hold: what is in them is theirs, so they are only looked at here. */
export function Sessions({ sandbox }: { sandbox: SandboxInfo }) {
  const isRunning = sandbox.state === "running";
  const now = useNow();
  const list = useAbout(sandbox.id, ["inside", "sessions"], (one) => one.listSessions(), {
    enabled: isRunning,
  });
  if (!isRunning) return <NotRunning sandbox={sandbox} what="sessions" />;
  if (list.data?.length === 0)
    return (
      <div className="empty">
        <p>
          No session yet. A session is a shell whose directory, variables and functions stay between commands.
        </p>
        <CommandLine text={`await sandbox.createSession({ cwd: "/workspace" })`} />
      </div>
    );
  return (
    <div className="scroll-x">
      <ErrorNote error={list.error} />
      <table className="stacked">
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">State</th>
            <th scope="col">Directory</th>
            <th scope="col">Shell</th>
            <th scope="col">Waiting</th>
            <th scope="col">Age</th>
          </tr>
        </thead>
        <tbody>
          {list.data?.map((session) => (
            <tr key={session.sessionId}>
              <td data-label="Session">{session.sessionId}</td>
              <td data-label="State">
                {session.running === undefined ? session.state : `runs ${session.running}`}
              </td>
              <td data-label="Directory" className="mono">
                {session.cwd}
              </td>
              <td data-label="Shell">{session.shell}</td>
              <td data-label="Waiting">{session.waiting.length}</td>
              <td data-label="Age">{age(now - Date.parse(session.createdAt))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
