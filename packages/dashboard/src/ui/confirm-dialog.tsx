import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./error-note.tsx";

/** For what cannot be undone: says what will happen, and does it when told so. */
export function ConfirmDialog(props: {
  title: string;
  verb: string;
  act: () => Promise<unknown>;
  onClose: () => void;
  onDone?: () => void;
  children: ReactNode;
}) {
  const { title, verb, act, onClose, onDone, children } = props;
  const doing = useMutation({
    mutationFn: act,
    onSuccess: () => {
      onClose();
      onDone?.();
    },
  });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <ErrorNote error={doing.error} />
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="danger" disabled={doing.isPending} onClick={() => doing.mutate()}>
          {verb}
        </button>
      </div>
    </Dialog>
  );
}
