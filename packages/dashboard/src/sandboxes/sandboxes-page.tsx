import { useQuery } from "@tanstack/react-query";
import type { SandboxInfo } from "holdfast";
import { useMemo, useRef, useState } from "react";
import { useKeys } from "../keyboard.ts";
import { listSandboxes, SANDBOXES } from "../live.ts";
import { go } from "../router.ts";
import { CommandLine } from "../ui/command.tsx";
import { ErrorNote } from "../ui/error-note.tsx";
import { CreateDialog } from "./create-dialog.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { useRowHeight } from "./row-height.ts";
import { SandboxRow } from "./sandbox-row.tsx";
import { useRowsInSight } from "./virtual-rows.ts";

export function SandboxesPage() {
  const { data, error } = useQuery({ queryKey: SANDBOXES, queryFn: listSandboxes });
  const [filter, setFilter] = useState("");
  const [selectedId, setSelectedId] = useState<string>();
  const [creating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState<SandboxInfo>();
  const search = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const height = useRowHeight();
  const shown = useMemo(() => newestFirst(data ?? []).filter((one) => matches(one, filter)), [data, filter]);
  const rows = useRowsInSight(list, { count: shown.length, height });
  const selected = shown.findIndex(({ id }) => id === selectedId);

  const select = (at: number) => {
    const target = shown[Math.max(0, Math.min(shown.length - 1, at))];
    if (target === undefined) return;
    setSelectedId(target.id);
    letGo();
    bringIntoSight(list.current, shown.indexOf(target) * height, height);
  };
  const open = () => {
    const target = shown[selected];
    if (target !== undefined) go({ page: "sandbox", id: target.id, tab: "overview" });
  };
  const down = () => select(selected + 1);
  const up = () => select(selected - 1);
  useKeys({
    j: down,
    ArrowDown: down,
    k: up,
    ArrowUp: up,
    Enter: open,
    n: () => setCreating(true),
    "/": () => search.current?.focus(),
  });

  return (
    <section className="sandboxes">
      <div className="bar">
        <h1>Sandboxes</h1>
        <span className="count">{data === undefined ? "" : countWords(data.length, shown.length)}</span>
        <span className="grow" />
        <input
          ref={search}
          type="search"
          placeholder="Filter by name, state, provider, label …"
          aria-label="Filter"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "Enter") open();
            if (event.key === "ArrowDown") down();
            if (event.key === "ArrowUp") up();
          }}
        />
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New sandbox
        </button>
      </div>
      <ErrorNote error={error} />
      {data?.length === 0 && <Empty onCreate={() => setCreating(true)} />}
      {data !== undefined && data.length > 0 && shown.length === 0 && (
        <p className="empty">
          None of {data.length} matches “{filter}”.
        </p>
      )}
      {shown.length > 0 && (
        <>
          <div className="row head" aria-hidden="true">
            <span>Name</span>
            <span>State</span>
            <span>Provider</span>
            <span>Age</span>
            <span>Idle</span>
            <span>What happens next</span>
            <span />
          </div>
          <ul
            ref={list}
            className="rows"
            aria-label="Sandboxes"
            style={{ paddingTop: rows.aboveHeight, paddingBottom: rows.belowHeight }}
          >
            {shown.slice(rows.first, rows.last).map((sandbox) => (
              <SandboxRow
                key={sandbox.id}
                sandbox={sandbox}
                isSelected={sandbox.id === selectedId}
                onDelete={() => setDeleting(sandbox)}
              />
            ))}
          </ul>
        </>
      )}
      {creating && <CreateDialog onClose={() => setCreating(false)} />}
      {deleting !== undefined && <DeleteDialog sandbox={deleting} onClose={() => setDeleting(undefined)} />}
    </section>
  );
}

function Empty({ onCreate }: { onCreate: () => void }) {
  return (
    <div className="empty">
      <h2>No sandbox yet</h2>
      <p>Make one here, or from a terminal. It shows up by itself.</p>
      <CommandLine text="npx holdfast create --name demo" />
      <p>
        <button type="button" className="primary" onClick={onCreate}>
          Make the first sandbox
        </button>
      </p>
    </div>
  );
}

function newestFirst(sandboxes: readonly SandboxInfo[]): SandboxInfo[] {
  return sandboxes.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt) || a.name.localeCompare(b.name));
}

/** Every word must be somewhere in it. */
function matches({ name, id, state, provider, labels }: SandboxInfo, filter: string): boolean {
  const tags = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const text = [name, id, state, provider, ...tags].join(" ").toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function countWords(all: number, shown: number): string {
  return all === shown ? String(all) : `${shown} of ${all}`;
}

/** Whoever goes through the list means its rows by Enter, and no longer the link or button that was pressed before. */
function letGo(): void {
  const { activeElement: focused } = document;
  if (focused instanceof HTMLElement && focused.matches("a, button")) focused.blur();
}

/** The page scrolls, not the list; rows that are out of sight are not there to be scrolled to. */
function bringIntoSight(list: HTMLElement | null, offset: number, height: number): void {
  if (list === null) return;
  const top = list.getBoundingClientRect().top + offset;
  if (top < height * 2) scrollBy({ top: top - height * 2 });
  if (top + height > innerHeight) scrollBy({ top: top + height - innerHeight });
}
