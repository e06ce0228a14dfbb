import { HoldfastError } from "@holdfast/protocol";
import type { DockerApi } from "./api.ts";
import type { Image } from "./engine-types.ts";

/** Looked at before anything is made: a wrong name leaves nothing behind. */
export async function requireImage(api: DockerApi, name: string, signal: AbortSignal): Promise<Image> {
  const image = await findImage(api, name, signal);
  if (image !== undefined) return image;
  throw new HoldfastError("launch_failed", `Docker has no image ${name}`, {
    hint: `Somebody removed it just now. To fetch it: docker pull ${name}`,
    details: { image: name },
    started: "no",
  });
}

export function findImage(api: DockerApi, name: string, signal: AbortSignal): Promise<Image | undefined> {
  return api.json<Image>({ method: "GET", path: `/images/${name}/json`, expect: [404], signal });
}

/** What the image says that its programs need, such as their PATH. */
export function imageEnvironment(image: Image): Record<string, string> {
  const pairs = (image.Config?.Env ?? []).map((line) => {
    const at = line.indexOf("=");
    return at === -1 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}
