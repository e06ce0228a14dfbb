export function joined(dir: string, name: string): string {
  return dir === "/" ? `/${name}` : `${dir}/${name}`;
}

export function parentOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at <= 0 ? "/" : path.slice(0, at);
}

/** Where the browser itself gets it, with the session's cookie, of any size. */
export function fileUrl(id: string, action: "" | "/tar", path: string): string {
  return `/v1/sandboxes/${encodeURIComponent(id)}/files${action}?path=${encodeURIComponent(path)}`;
}
