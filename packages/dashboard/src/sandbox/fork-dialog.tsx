import { useMutation } from "@tanstack/react-query";
import type { SandboxInfo } from "holdfast";
import { type SubmitEvent, useState } from "react";
import { go } from "../router.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNote } from "../ui/error-note.tsx";
import { held } from "./use-sandbox.ts";

export function ForkDialog({ sandbox, onClose }: { sandbox: SandboxInfo; onClose: () => void }) {
  const [count, setCount] = useState(1);
  const [name, setName] = useState("");
  const forking = useMutation({
    mutationFn: async () => (await held(sandbox.id)).fork(count, name === "" ? {} : { name }),
    onSuccess: ([first]) => {
      onClose();
      if (first !== undefined && count === 1) go({ page: "sandbox", id: first.id, tab: "overview" });
      else go({ page: "sandboxes" });
    },
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    forking.mutate();
  };
  return (
    <Dialog title={`Fork ${sandbox.name}`} onClose={onClose}>
      <p>
        New sandboxes with its files as they are now, its spec and its policy. What runs in it is not copied.
      </p>
      <form onSubmit={submit} className="fields">
        <label>
          How many
          <input
            type="number"
            min={1}
            max={100}
            value={count}
            onChange={(event) => setCount(Number(event.target.value))}
          />
        </label>
        <label>
          Name
          <input
            placeholder="by their ids"
            value={name}
            autoComplete="off"
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <ErrorNote error={forking.error} />
        <div className="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={forking.isPending}>
            {forking.isPending ? "Forking …" : "Fork"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
