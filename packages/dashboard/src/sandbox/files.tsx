import { useQuery } from "@tanstack/react-query";
import type { FileInfo, SandboxInfo } from "holdfast";
import { useState } from "react";
import { bytes, moment } from "../format.ts";
import { queries } from "../server.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { fileUrl, parentOf } from "./file-paths.ts";
import { FileView } from "./file-view.tsx";
import { NotRunning } from "./not-running.tsx";
import { UploadZone } from "./upload-zone.tsx";
import { held } from "./use-sandbox.ts";

const HOME = "/workspace";
// More than a person reads; `holdfast exec -- ls` has all of them.
const MOST = 2000;

export function Files({ sandbox }: { sandbox: SandboxInfo }) {
  const { id, state } = sandbox;
  const isRunning = state === "running";
  const [dir, setDir] = useState(HOME);
  const [openPath, setOpenPath] = useState<string>();
  const list = useQuery({
    // Not under what changes with the sandbox: each look at files counts as use.
    queryKey: ["files", id, dir],
    queryFn: () => entriesOf(id, dir),
    enabled: isRunning,
    gcTime: 0,
  });
  const refresh = () => queries.invalidateQueries({ queryKey: ["files", id] });
  if (!isRunning) return <NotRunning sandbox={sandbox} what="files" />;
  const enter = async (entry: FileInfo) => {
    if (await isDirectory(id, entry)) setDir(entry.path);
    else setOpenPath(entry.path);
  };
  const shown = list.data?.slice(0, MOST);
  return (
    <UploadZone id={id} dir={dir} onDone={refresh} before={<Crumbs dir={dir} onGo={setDir} />}>
      <ErrorNote error={list.error} />
      <ul className="files">
        {dir !== "/" && (
          <li>
            <button type="button" className="quiet" onClick={() => setDir(parentOf(dir))}>
              ..
            </button>
          </li>
        )}
        {shown?.map((entry) => (
          <li key={entry.path}>
            <button type="button" className="quiet" onClick={() => void enter(entry)}>
              {entry.type === "directory" ? `${entry.name}/` : entry.name}
              {entry.target !== undefined && ` → ${entry.target}`}
            </button>
            <span className="soft size">{entry.type === "file" ? bytes(entry.sizeBytes) : ""}</span>
            <span className="soft when">{moment(entry.modifiedAt)}</span>
            {entry.type === "file" ? (
              <a className="button quiet" href={fileUrl(id, "", entry.path)} download={entry.name}>
                Download<span className="unseen"> {entry.name}</span>
              </a>
            ) : (
              <span />
            )}
          </li>
        ))}
      </ul>
      {list.data !== undefined && list.data.length > MOST && (
        <p className="soft">
          There are more than these {MOST}: <code>ls</code> in a terminal has all of them.
        </p>
      )}
      {list.data?.length === 0 && <p className="empty">Nothing is here. Drop a file, or upload one.</p>}
      {openPath !== undefined && (
        <FileView id={id} path={openPath} onClose={() => setOpenPath(undefined)} onSaved={refresh} />
      )}
      <div className="buttons">
        <button type="button" className="quiet" onClick={() => void refresh()}>
          Look again
        </button>
        <a className="button quiet" href={fileUrl(id, "/tar", dir)} download>
          Download all as tar
        </a>
      </div>
    </UploadZone>
  );
}

/** Itself, or what a link leads to; of a link that leads nowhere its file says so. */
async function isDirectory(id: string, { type, path }: FileInfo): Promise<boolean> {
  if (type !== "symlink") return type === "directory";
  const { files } = await held(id);
  return files.stat(path, { follow: true }).then(
    (led) => led.type === "directory",
    () => false,
  );
}

async function entriesOf(id: string, dir: string): Promise<FileInfo[]> {
  const found: FileInfo[] = [];
  for await (const entry of (await held(id)).files.list(dir)) {
    found.push(entry);
    if (found.length > MOST) break;
  }
  return found.sort(
    (a, b) => Number(b.type === "directory") - Number(a.type === "directory") || a.name.localeCompare(b.name),
  );
}

function Crumbs({ dir, onGo }: { dir: string; onGo: (dir: string) => void }) {
  const parts = dir.split("/").filter(Boolean);
  return (
    <nav className="crumbs mono" aria-label="Directory">
      <button type="button" className="quiet" onClick={() => onGo("/")} aria-label="root directory">
        /
      </button>
      {parts.map((part, at) => {
        const path = `/${parts.slice(0, at + 1).join("/")}`;
        return (
          <button key={path} type="button" className="quiet" onClick={() => onGo(path)}>
            {part}/
          </button>
        );
      })}
    </nav>
  );
}
