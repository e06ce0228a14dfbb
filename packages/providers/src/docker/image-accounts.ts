import { type AccountFile, type AccountTexts, accountFiles } from "./account.ts";
import type { DockerApi } from "./api.ts";
import { firstFileIn } from "./tar.ts";

/** Images that a server meets again are few; their lists are a few kilobytes. */
const MOST_KNOWN = 200;

/** The lists of users of images, as one container of each had them before anything ran in it. */
export class ImageAccounts {
  readonly #known = new Map<string, AccountTexts>();

  get(imageId: string): AccountTexts | undefined {
    return this.#known.get(imageId);
  }

  /** `container`: one of that image in which nothing ran yet. */
  async read(
    api: DockerApi,
    { imageId, container, signal }: { imageId: string; container: string; signal: AbortSignal },
  ): Promise<AccountTexts> {
    const known = this.#known.get(imageId);
    if (known !== undefined) return known;
    const texts = await readAccounts(api, { container, signal });
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(imageId, texts);
    return texts;
  }
}

/** As they are in that container now. */
export async function readAccounts(
  api: DockerApi,
  { container, signal }: { container: string; signal: AbortSignal },
): Promise<AccountTexts> {
  const [passwd = "", group = ""] = await Promise.all(
    accountFiles.map((file) => readFileOf(api, container, { file, signal })),
  );
  return { "/etc/passwd": passwd, "/etc/group": group };
}

/** Empty if there is none. */
async function readFileOf(
  api: DockerApi,
  container: string,
  { file, signal }: { file: AccountFile; signal: AbortSignal },
): Promise<string> {
  const path = `/containers/${container}/archive`;
  const call = { method: "GET", path, query: { path: file }, expect: [404], signal } as const;
  const { status, bytes } = await api.request(call);
  return status === 404 ? "" : firstFileIn(bytes);
}
