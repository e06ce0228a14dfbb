import { useMutation } from "@tanstack/react-query";
import { type DragEvent, type ReactNode, useRef, useState } from "react";
import { bytes } from "../format.ts";
import { ErrorNote } from "../ui/error-note.tsx";
import { joined } from "./file-paths.ts";
import { held } from "./use-sandbox.ts";

/** Takes files by button and by drop into one directory. */
export function UploadZone({
  id,
  dir,
  onDone,
  before,
  children,
}: {
  id: string;
  dir: string;
  onDone: () => Promise<void>;
  /** Shown beside the button. */
  before: ReactNode;
  children: ReactNode;
}) {
  const [isOver, setIsOver] = useState(false);
  const [progress, setProgress] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const uploading = useMutation({
    mutationFn: async (files: readonly File[]) => {
      const sandbox = await held(id);
      for (const file of files) {
        setProgress(`uploading ${file.name}, ${bytes(file.size)} …`);
        const onProgress = (sentBytes: number) =>
          setProgress(`uploading ${file.name}: ${bytes(sentBytes)} of ${bytes(file.size)}`);
        await sandbox.files.upload(joined(dir, file.name), file, { onProgress });
      }
      setProgress(files.length === 1 ? "uploaded" : `uploaded ${files.length} files`);
    },
    onSettled: onDone,
  });
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    uploading.mutate([...event.dataTransfer.files]);
  };
  return (
    <section
      aria-label="Files"
      className={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={drop}
    >
      <div className="bar">
        {before}
        <span className="grow" />
        <span className="soft" role="status">
          {uploading.isError ? "" : progress}
        </span>
        <button
          type="button"
          className="primary"
          disabled={uploading.isPending}
          onClick={() => input.current?.click()}
        >
          Upload
        </button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(event) => {
            uploading.mutate([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </div>
      <ErrorNote error={uploading.error} />
      {children}
    </section>
  );
}
