import { useMutation } from "@tanstack/react-query";
import { Sandbox, type SandboxInfo, type Snapshot } from "holdfast";
import { useState } from "react";
import { bytes, moment } from "../format.ts";
import { go } from "../router.ts";
import { client } from "../server.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { ErrorNote } from "../ui/error-note.tsx";
import { held, useAbout } from "./use-sandbox.ts";

export function Snapshots({ sandbox }: { sandbox: SandboxInfo }) {
  const { id } = sandbox;
  const [deleting, setDeleting] = useState<Snapshot>();
  const list = useAbout(id, "snapshots", (one) => one.snapshots());
  const making = useMutation({
    mutationFn: async () => (await held(id)).snapshot(),
    onSettled: () => list.refetch(),
  });
  const starting = useMutation({
    mutationFn: (snapshot: Snapshot) => Sandbox.create({ fromSnapshot: snapshot.id }, { client }),
    onSuccess: (made) => go({ page: "sandbox", id: made.id, tab: "overview" }),
  });
  return (
    <div>
      <div className="bar">
        <button type="button" className="primary" disabled={making.isPending} onClick={() => making.mutate()}>
          {making.isPending ? "Copying …" : "Make a snapshot"}
        </button>
        <span className="soft">Its files as they are now; not what runs.</span>
      </div>
      <ErrorNote error={list.error ?? making.error ?? starting.error} />
      {list.data?.length === 0 && (
        <p className="empty">No snapshot yet. From one, new sandboxes can be made with the same files.</p>
      )}
      {(list.data?.length ?? 0) > 0 && (
        <div className="scroll-x">
          <table className="stacked">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col">Files</th>
                <th scope="col">Size</th>
                <th scope="col">Made</th>
                <th scope="col">
                  <span className="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.data?.map((snapshot) => (
                <tr key={snapshot.id}>
                  <td data-label="Name">{snapshot.info.name}</td>
                  <td data-label="State" title={snapshot.info.failure}>
                    {snapshot.info.state}
                  </td>
                  <td data-label="Files">{snapshot.info.files}</td>
                  <td data-label="Size">{bytes(snapshot.info.sizeBytes)}</td>
                  <td data-label="Made">{moment(snapshot.info.createdAt)}</td>
                  <td>
                    <button
                      type="button"
                      disabled={starting.isPending}
                      onClick={() => starting.mutate(snapshot)}
                    >
                      New sandbox from it
                    </button>{" "}
                    <button type="button" className="quiet" onClick={() => setDeleting(snapshot)}>
                      Delete
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {deleting !== undefined && (
        <ConfirmDialog
          title={`Delete the snapshot ${deleting.info.name}?`}
          verb="Delete"
          act={() => deleting.delete()}
          onClose={() => setDeleting(undefined)}
          onDone={() => void list.refetch()}
        >
          <p>Its copy of the files is removed. Sandboxes that were made from it keep theirs.</p>
        </ConfirmDialog>
      )}
    </div>
  );
}
