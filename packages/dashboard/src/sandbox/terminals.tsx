import { useMutation } from "@tanstack/react-query";
import type { SandboxInfo, TerminalInfo } from "holdfast";
import { useState } from "react";
import { commandLine } from "../format.ts";
import { about } from "../live.ts";
import { queries } from "../server.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { ErrorNote } from "../ui/error-note.tsx";
import { NotRunning } from "./not-running.tsx";
import { TerminalView } from "./terminal-view.tsx";
import { held, useAbout } from "./use-sandbox.ts";

export function Terminals({ sandbox }: { sandbox: SandboxInfo }) {
  const { id, state } = sandbox;
  const isRunning = state === "running";
  const [chosen, setChosen] = useState<string>();
  const [ending, setEnding] = useState<TerminalInfo>();
  const list = useAbout(id, ["inside", "terminals"], (one) => one.listTerminals(), { enabled: isRunning });
  const refresh = () => queries.invalidateQueries({ queryKey: about(id, "inside", "terminals") });
  const opening = useMutation({
    mutationFn: async () => {
      const terminal = await (await held(id)).terminal({ id: freeId(list.data ?? []) });
      await terminal.close();
      return terminal.terminalId;
    },
    onSuccess: async (terminalId) => {
      await refresh();
      setChosen(terminalId);
    },
  });
  if (!isRunning) return <NotRunning sandbox={sandbox} what="terminals" />;
  const terminals = list.data ?? [];
  const open =
    terminals.find(({ terminalId }) => terminalId === chosen) ??
    terminals.find(({ state }) => state === "running") ??
    terminals[0];
  return (
    <div>
      <div className="bar" role="toolbar" aria-label="Terminals">
        {terminals.map((terminal) => (
          <button
            key={terminal.terminalId}
            type="button"
            aria-pressed={terminal === open}
            onClick={() => setChosen(terminal.terminalId)}
            title={`${terminal.terminalId}: ${commandLine(terminal.command)}`}
          >
            {nameOf(terminal.terminalId)}
            {viewersOf(terminal)}
          </button>
        ))}
        <button
          type="button"
          className="primary"
          disabled={opening.isPending}
          onClick={() => opening.mutate()}
        >
          New terminal
        </button>
        <span className="grow" />
        {open !== undefined && (
          <button type="button" className="quiet" onClick={() => setEnding(open)}>
            {endVerb(open)} {nameOf(open.terminalId)}
          </button>
        )}
      </div>
      <ErrorNote error={opening.error ?? list.error} />
      {list.data !== undefined && open === undefined && (
        <p className="empty">
          No terminal yet. One that is opened lives in the sandbox: it is still there after this page is
          closed, and after the server was restarted.
        </p>
      )}
      {open !== undefined && (
        <TerminalView key={`${open.terminalId} ${open.ptyId}`} id={id} terminalId={open.terminalId} />
      )}
      {ending !== undefined && (
        <ConfirmDialog
          title={`${endVerb(ending)} ${nameOf(ending.terminalId)}?`}
          verb={`${endVerb(ending)} it`}
          act={async () => (await (await held(id)).attachTerminal(ending.terminalId)).destroy()}
          onClose={() => setEnding(undefined)}
          onDone={() => void refresh()}
        >
          <p>
            {ending.state === "running"
              ? "Its program is ended with everything that it started, for all who look at it."
              : "Its program has ended; what it left on the screen is removed."}
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}

/** Ids that nobody chose are long, and differ at their end. */
function nameOf(terminalId: string): string {
  return /^term_\w{20,}$/.test(terminalId) ? `term …${terminalId.slice(-5)}` : terminalId;
}

function endVerb({ state }: TerminalInfo): string {
  return state === "running" ? "End" : "Forget";
}

function viewersOf({ viewers, state }: TerminalInfo): string {
  if (state === "exited") return " · ended";
  return viewers > 1 ? ` · ${viewers} viewers` : "";
}

/** The first that nobody has: `main`, then `term-2` and so on. */
function freeId(terminals: readonly TerminalInfo[]): string {
  const taken = new Set(
    terminals.filter(({ state }) => state === "running").map(({ terminalId }) => terminalId),
  );
  if (!taken.has("main")) return "main";
  for (let no = 2; ; no++) if (!taken.has(`term-${no}`)) return `term-${no}`;
}
