import { Sandbox, type SandboxInfo } from "holdfast";
import { client } from "../server.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";

export function DeleteDialog({
  sandbox,
  onClose,
  onDone,
}: {
  sandbox: SandboxInfo;
  onClose: () => void;
  onDone?: () => void;
}) {
  const { id, name, state } = sandbox;
  // The list says when there is evidence; nobody needs to wait for it here.
  const remove = async () => (await Sandbox.get(id, { client })).delete({ waitSeconds: 0 });
  return (
    <ConfirmDialog
      title={`Delete ${name}?`}
      verb="Delete"
      act={remove}
      onClose={onClose}
      {...(onDone !== undefined && { onDone })}
    >
      <p>
        Its files are removed{state === "running" ? ", and everything that runs in it is ended" : ""}. This
        cannot be undone; a snapshot made before would be kept.
      </p>
    </ConfirmDialog>
  );
}
