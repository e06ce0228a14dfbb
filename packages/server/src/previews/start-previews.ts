import { HoldfastError } from "@holdfast/protocol";
import { previewLimits } from "./limits.ts";
import { PreviewPlace } from "./preview-name.ts";
import { Previews, type PreviewsDeps } from "./previews.ts";

interface PreviewsConfig {
  readonly host: string;
  /** The API's; 0 for any. */
  readonly port: number;
  readonly previewPort: number | undefined;
  readonly previewUrl: string | undefined;
}

interface RunningPreviews {
  /** Each preview is a name below this one. */
  readonly url: string;
  readonly place: PreviewPlace;
  cut(revoked: { sandboxId: string; port: number }): void;
  close(): Promise<void>;
}

/** Serves them, and knows how visitors reach them. */
export async function startPreviews(
  config: PreviewsConfig,
  deps: Omit<PreviewsDeps, "place" | "isProxied" | "limits">,
): Promise<RunningPreviews> {
  const { previewUrl } = config;
  // A request's port does not matter: it may be a proxy's.
  const place = new PreviewPlace(previewUrl ?? "http://localhost");
  const previews = new Previews({
    ...deps,
    place,
    limits: previewLimits,
    isProxied: previewUrl !== undefined,
  });
  const port = await listen(previews, config, deps);
  const url = previewUrl ?? `http://localhost:${port}`;
  return {
    url,
    place: new PreviewPlace(url),
    cut: (revoked) => previews.cut(revoked),
    close: () => previews.close(),
  };
}

/**
 * On the port that was asked for, or on the one after the API's, so that addresses stay over a restart. If somebody has
 * that one, and nobody asked for it, any other will do: it is no reason not to start.
 */
async function listen(
  previews: Previews,
  { host, port: apiPort, previewPort }: PreviewsConfig,
  { log }: Pick<PreviewsDeps, "log">,
): Promise<number> {
  const port = previewPort ?? (apiPort === 0 || apiPort === 65_535 ? 0 : apiPort + 1);
  try {
    return await previews.listen({ host, port });
  } catch (cause) {
    if (previewPort === undefined) {
      log.warn("previews are served on another port, and their addresses change with it", { taken: port });
      return await previews.listen({ host, port: 0 });
    }
    await previews.close();
    throw new HoldfastError(
      "unavailable",
      `cannot serve previews on ${host}:${port}: ${(cause as Error).message}`,
      {
        hint: "choose another port with --preview-port, or 0 for any",
        cause,
      },
    );
  }
}
