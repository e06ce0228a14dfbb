/** An image's name, in the parts that a pull needs. */
export interface ImageName {
  /** Without tag and digest, as it was given. */
  readonly repository: string;
  /** A tag or a digest; the daemon would fetch every tag without one. */
  readonly version: string;
  /** Under which name credentials for its registry are kept. */
  readonly registry: string;
}

/** Docker's own, for names that say no other. */
export const DOCKER_HUB = "https://index.docker.io/v1/";

export function parseImageName(name: string): ImageName {
  const [path = "", digest] = name.split("@");
  // A colon before a slash is a port's.
  const [, beforeTag = "", tag] = /^(.+?)(?::([^:/]+))?$/.exec(path) ?? [];
  const repository = beforeTag;
  const [host = ""] = repository.split("/");
  const namesHost = repository.includes("/") && /[.:]|^localhost$/.test(host) && host !== "docker.io";
  return { repository, version: digest ?? tag ?? "latest", registry: namesHost ? host : DOCKER_HUB };
}
