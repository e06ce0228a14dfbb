import { useMutation, useQuery } from "@tanstack/react-query";
import { type CreateSandbox, Operator, Sandbox } from "holdfast";
import { type SubmitEvent, useState } from "react";
import { go } from "../router.ts";
import { client } from "../server.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNote } from "../ui/error-note.tsx";

const idleChoices = { stop: "stop it and keep its files", remove: "remove it", keep: "keep it running" };

export function CreateDialog({ onClose }: { onClose: () => void }) {
  const [said, setSaid] = useState("");
  const providers = useQuery({
    queryKey: ["providers"],
    queryFn: async () => (await Operator.connect({ client })).providers(),
  });
  const making = useMutation({
    mutationFn: (spec: CreateSandbox) =>
      Sandbox.create(spec, { client, onProgress: ({ type }) => setSaid(type.replaceAll("_", " ")) }),
    onSuccess: ({ id }) => {
      onClose();
      go({ page: "sandbox", id, tab: "overview" });
    },
  });
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    making.mutate(specOf(new FormData(event.currentTarget)));
  };
  const withImages = providers.data?.some(({ capabilities }) => capabilities.images) ?? false;
  return (
    <Dialog title="New sandbox" onClose={onClose}>
      <form onSubmit={submit} className="fields">
        <label>
          Name
          <input name="name" placeholder="by its id" autoComplete="off" maxLength={63} />
        </label>
        {(providers.data?.length ?? 0) > 1 && (
          <label>
            Provider
            <select name="provider">
              {providers.data?.map(({ provider, isDefault }) => (
                <option key={provider} value={provider}>
                  {isDefault ? `${provider} (default)` : provider}
                </option>
              ))}
            </select>
          </label>
        )}
        {withImages && (
          <label>
            Image
            <input name="image" placeholder="the provider's own" autoComplete="off" />
          </label>
        )}
        <label>
          When idle for
          <select name="lifetimeSeconds" defaultValue="1800">
            <option value="300">5 minutes</option>
            <option value="1800">half an hour</option>
            <option value="7200">2 hours</option>
            <option value="86400">a day</option>
          </select>
        </label>
        <label>
          then
          <select name="onIdle">
            {Object.entries(idleChoices).map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          Network
          <select name="network">
            <option value="">the default</option>
            <option value="none">none</option>
            <option value="full">full</option>
          </select>
        </label>
        <ErrorNote error={making.error} />
        <div className="buttons">
          <span className="grow" role="status">
            {making.isPending ? said : ""}
          </span>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={making.isPending}>
            {making.isPending ? "Creating …" : "Create"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function specOf(form: FormData): CreateSandbox {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const [name, provider, image, network] = ["name", "provider", "image", "network"].map(text);
  return {
    ...(name && { name }),
    ...(provider && { provider }),
    ...(image && { image }),
    ...(network && { network: network as "none" | "full" }),
    lifetimeSeconds: Number(text("lifetimeSeconds")),
    onIdle: text("onIdle") as "stop" | "remove" | "keep",
  };
}
