import type { InstanceRef } from "@holdfast/core";
import type { AccountTexts } from "./account.ts";
import type { DockerApi } from "./api.ts";
import type { Image } from "./engine-types.ts";
import type { Holder } from "./holder.ts";
import type { ImageAccounts } from "./image-accounts.ts";
import { instanceLabels } from "./labels.ts";
import { containerName } from "./names.ts";

/**
 * Of an image only a container shows its files. One that is made for a look has the instance's own name and labels, so
 * that whatever removes an instance removes it too, and one more label, so that nobody starts it.
 */
const DRAFT_LABEL = "holdfast.draft";

export async function lookIntoImage(
  api: DockerApi,
  look: { ref: InstanceRef; image: Image; accounts: ImageAccounts; now: number; signal: AbortSignal },
): Promise<AccountTexts> {
  const { ref, image, accounts, now, signal } = look;
  const name = containerName(ref);
  const labels = instanceLabels(ref, { createdAt: now, lifetimeSeconds: 0, fence: 0, spec: "", image: "" });
  await api.request({
    method: "POST",
    path: "/containers/create",
    query: { name },
    json: {
      Image: image.Id,
      Entrypoint: ["/never-started"],
      Labels: { ...labels, [DRAFT_LABEL]: "1" },
      HostConfig: { NetworkMode: "none" },
    },
    signal,
  });
  const texts = await accounts.read(api, { imageId: image.Id, container: name, signal });
  await remove(api, name, signal);
  return texts;
}

/** The name is free again of one that an interrupted look left there. */
export async function withoutDraft(api: DockerApi, holder: Holder, signal: AbortSignal): Promise<Holder> {
  if (holder.kind !== "known" || holder.container.Config.Labels?.[DRAFT_LABEL] === undefined) return holder;
  await remove(api, holder.container.Id, signal);
  return { kind: "nobody" };
}

async function remove(api: DockerApi, which: string, signal: AbortSignal): Promise<void> {
  const query = { v: "1", force: "1" };
  await api.request({ method: "DELETE", path: `/containers/${which}`, query, expect: [404], signal });
}
