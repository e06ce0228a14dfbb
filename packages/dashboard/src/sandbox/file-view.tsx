import { useMutation, useQuery } from "@tanstack/react-query";
import { HoldfastError } from "holdfast";
import { useState } from "react";
import { bytes } from "../format.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNote } from "../ui/error-note.tsx";
import { fileUrl } from "./file-paths.ts";
import { held } from "./use-sandbox.ts";

// What a text field takes without getting slow.
const MOST_BYTES = 512 * 1024;

type Content =
  | { kind: "text"; text: string; etag: string }
  /** Text that this page could not write back as it was; or no text at all. */
  | { kind: "other"; why: string; text?: string };

/** A file to read and, if it is small text, to change. It is saved only over what was read. */
export function FileView(props: {
  id: string;
  path: string;
  onClose: () => void;
  onSaved: () => Promise<void>;
}) {
  const { id, path, onClose, onSaved } = props;
  const content = useQuery({ queryKey: ["file", id, path], queryFn: () => read(id, path), gcTime: 0 });
  return (
    <Dialog title={path} onClose={onClose}>
      <ErrorNote error={content.error} />
      {content.data?.kind === "other" && (
        <>
          <p>{content.data.why}</p>
          {content.data.text !== undefined && (
            <textarea
              aria-label={`Content of ${path}`}
              rows={22}
              readOnly
              spellCheck={false}
              value={content.data.text}
            />
          )}
          <div className="buttons">
            <a className="button" href={fileUrl(id, "", path)} download>
              Download
            </a>
            <button type="button" onClick={onClose}>
              Close
            </button>
          </div>
        </>
      )}
      {content.data?.kind === "text" && (
        <Editor
          key={content.data.etag}
          id={id}
          path={path}
          before={content.data}
          onClose={onClose}
          onSaved={onSaved}
          onReload={() => void content.refetch()}
        />
      )}
    </Dialog>
  );
}

function Editor(props: {
  id: string;
  path: string;
  before: { text: string; etag: string };
  onClose: () => void;
  onSaved: () => Promise<void>;
  onReload: () => void;
}) {
  const { id, path, before, onClose, onSaved, onReload } = props;
  const [text, setText] = useState(before.text);
  const saving = useMutation({
    mutationFn: async ({ over }: { over: boolean }) =>
      (await held(id)).files.write(path, text, over ? {} : { ifMatch: before.etag }),
    onSuccess: async () => {
      await onSaved();
      onClose();
    },
  });
  const isConflict = saving.error instanceof HoldfastError && saving.error.code === "precondition_failed";
  return (
    <>
      <textarea
        aria-label={`Content of ${path}`}
        rows={22}
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {isConflict ? (
        <div className="error-note" role="alert">
          <p>Somebody has changed this file since you opened it. Nothing was saved.</p>
        </div>
      ) : (
        <ErrorNote error={saving.error} />
      )}
      <div className="buttons">
        <a className="button quiet" href={fileUrl(id, "", path)} download>
          Download
        </a>
        <span className="grow" />
        {isConflict && (
          <>
            <button type="button" onClick={onReload}>
              Show theirs
            </button>
            <button type="button" className="danger" onClick={() => saving.mutate({ over: true })}>
              Save over it
            </button>
          </>
        )}
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="primary"
          disabled={saving.isPending || text === before.text}
          onClick={() => saving.mutate({ over: false })}
        >
          Save
        </button>
      </div>
    </>
  );
}

async function read(id: string, path: string): Promise<Content> {
  const { files } = await held(id);
  const { type, sizeBytes, etag } = await files.stat(path, { follow: true });
  if (type !== "file") return { kind: "other", why: `It is a ${type}.` };
  const isWhole = sizeBytes <= MOST_BYTES;
  const content = await files.read(path, isWhole ? {} : { end: MOST_BYTES });
  const text = decoded(content, { isWhole });
  if (text === undefined) return { kind: "other", why: `It is not text, and has ${bytes(sizeBytes)}.` };
  if (!isWhole)
    return {
      kind: "other",
      why: `Its first ${bytes(MOST_BYTES)} of ${bytes(sizeBytes)}, to read only.`,
      text,
    };
  // A text field makes other line ends of these.
  if (text.includes("\r"))
    return { kind: "other", why: "Its lines end with CR: it can be read here, not changed.", text };
  return { kind: "text", text, etag };
}

/** A character may be cut at the end of what is only a part. */
function decoded(content: Uint8Array, { isWhole }: { isWhole: boolean }): string | undefined {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const text = decoder.decode(content, { stream: !isWhole });
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
