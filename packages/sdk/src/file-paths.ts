/** A path inside the sandbox, absolute: text, or the exact bytes where a name is not UTF-8. */
export type FilePath = string | Uint8Array;

/** The query of a call about files: paths as percent-encoded bytes, the rest as text. */
export function fileQuery(
  paths: Record<string, FilePath | undefined>,
  rest: Record<string, string | number | boolean | undefined> = {},
): string {
  const named = Object.entries(paths).map(([name, path]) => [name, path && encoded(path)]);
  const others = Object.entries(rest).map(([name, value]) => [name, value && encodeURIComponent(value)]);
  return [...named, ...others]
    .filter(([, value]) => value !== undefined && value !== false)
    .map((pair) => pair.join("="))
    .join("&");
}

function encoded(path: FilePath): string {
  if (typeof path === "string") return encodeURIComponent(path);
  return Array.from(path, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}
