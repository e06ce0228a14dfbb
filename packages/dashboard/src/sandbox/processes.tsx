import { useMutation } from "@tanstack/react-query";
import type { ProcessInfo, ProcessStatus, SandboxInfo } from "holdfast";
import { type SubmitEvent, useState } from "react";
import { useNow } from "../clock.ts";
import { age, commandLine } from "../format.ts";
import { about } from "../live.ts";
import { queries } from "../server.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { LogView } from "./log-view.tsx";
import { NotRunning } from "./not-running.tsx";
import { held, useAbout } from "./use-sandbox.ts";

export function Processes({ sandbox }: { sandbox: SandboxInfo }) {
  const { id, state } = sandbox;
  const isRunning = state === "running";
  const [openId, setOpenId] = useState<string>();
  const list = useAbout(id, ["inside", "processes"], (one) => one.listProcesses(), { enabled: isRunning });
  if (!isRunning) return <NotRunning sandbox={sandbox} what="processes" />;
  const latest = (list.data ?? []).toReversed();
  const refresh = () => queries.invalidateQueries({ queryKey: about(id, "inside") });
  return (
    <div>
      <StartProcess id={id} onStarted={(processId) => void refresh().then(() => setOpenId(processId))} />
      <ErrorNote error={list.error} />
      {latest.length === 0 && list.data !== undefined && (
        <p className="empty">No process was started yet. One that is started above runs on by itself.</p>
      )}
      <ul className="processes">
        {latest.map((process) => (
          <ProcessItem
            key={process.processId}
            id={id}
            process={process}
            isOpen={process.processId === openId}
            onToggle={() => setOpenId(process.processId === openId ? undefined : process.processId)}
            onChange={refresh}
          />
        ))}
      </ul>
    </div>
  );
}

function StartProcess({ id, onStarted }: { id: string; onStarted: (processId: string) => void }) {
  const [command, setCommand] = useState("");
  const starting = useMutation({
    mutationFn: async () => (await held(id)).startProcess(command),
    onSuccess: ({ processId }) => {
      setCommand("");
      onStarted(processId);
    },
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    starting.mutate();
  };
  return (
    <form onSubmit={submit}>
      <div className="bar">
        <input
          className="mono grow"
          aria-label="Command"
          placeholder="a command, such as: npm run dev"
          required
          value={command}
          onChange={(event) => setCommand(event.target.value)}
        />
        <button type="submit" className="primary" disabled={starting.isPending}>
          Start process
        </button>
      </div>
      <ErrorNote error={starting.error} />
    </form>
  );
}

function ProcessItem(props: {
  id: string;
  process: ProcessInfo;
  isOpen: boolean;
  onToggle: () => void;
  onChange: () => Promise<void>;
}) {
  const { id, process, isOpen, onToggle, onChange } = props;
  const now = useNow();
  const { processId, command, status, startedAt, endedAt } = process;
  const killing = useMutation({
    mutationFn: async () => (await (await held(id)).getProcess(processId)).kill(),
    onSuccess: onChange,
  });
  const until = endedAt === undefined ? now : Date.parse(endedAt);
  return (
    <li className="panel">
      <div className="bar">
        <button type="button" className="quiet" aria-expanded={isOpen} onClick={onToggle}>
          {isOpen ? "▾" : "▸"} <code>{commandLine(command)}</code>
        </button>
        <span className="grow" />
        <span className={isBad(status) ? "status bad" : "status soft"}>
          {statusWords(status)}, {age(until - Date.parse(startedAt))}
        </span>
        {status.state === "running" && (
          <button type="button" disabled={killing.isPending} onClick={() => killing.mutate()}>
            Stop
          </button>
        )}
      </div>
      <ErrorNote error={killing.error} />
      {isOpen && <LogView id={id} processId={processId} onEnd={onChange} />}
    </li>
  );
}

function isBad(status: ProcessStatus): boolean {
  return status.state === "lost" || (status.state === "exited" && status.exitCode !== 0);
}

function statusWords(status: ProcessStatus): string {
  if (status.state === "running") return "runs";
  if (status.state === "lost") return `lost: ${status.reason}`;
  if (status.oomKilled) return "ended: out of memory";
  return status.signal === null ? `exited ${status.exitCode}` : `ended by ${status.signal}`;
}
