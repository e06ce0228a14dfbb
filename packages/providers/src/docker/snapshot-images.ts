import { randomUUID } from "node:crypto";
import { link, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/protocol";
import { isCode, writeDurably } from "../local/atomic-file.ts";
import { type Layout, makeLayout } from "../local/layout.ts";
import { assertSafeId, isSafeId } from "../local/name.ts";
import type { Elsewhere } from "../local/snapshot-vault.ts";
import type { DockerApi } from "./api.ts";
import type { Image, ListedImage } from "./engine-types.ts";
import { refusalOf } from "./errors.ts";
import { findImage } from "./image.ts";

/**
 * Images that hold the layers of snapshots, one each. An image is ours if it has the name **and** the label: one that
 * somebody makes of a container of ours has the label too, and not the name. The daemon counts who uses it, and refuses
 * to remove it until nobody does: so a snapshot may go before the sandboxes that were made from it, and its image goes
 * with the last of them.
 */
const REPOSITORY = "holdfast/snapshot";
/** Podman says before it where it believes the image to be from. */
const NAME = /(?:^|\/)holdfast\/snapshot:([^/:]+)$/;
/** Whose: a daemon may serve several data dirs. */
const LABEL = "holdfast.snapshot";
/** 10 MB/s, and a gigabyte in any case: a daemon that takes longer hangs. */
const SLOWEST_BYTES_PER_MS = 10_000;
const LEAST_MS = 100_000;

export class SnapshotImages implements Elsewhere {
  readonly #api: DockerApi;
  readonly #layout: Layout;

  constructor({ api, layout }: { api: DockerApi; layout: Layout }) {
    this.#api = api;
    this.#layout = layout;
  }

  /** What the container's file system has beyond its image becomes an image, with that image below it. Gives its id. */
  async commit(
    snapshotId: string,
    { container, sizeBytes, signal }: { container: string; sizeBytes: number; signal: AbortSignal },
  ): Promise<string> {
    const name = nameOf(snapshotId);
    const label = `LABEL ${LABEL}=${await this.#owner()}`;
    if ((await findImage(this.#api, name, signal)) !== undefined) throw taken(name);
    // Whoever asks for it has paused it, and lets it go on when the volumes are copied, too.
    const query = { container, repo: REPOSITORY, tag: snapshotId, pause: "0", changes: label };
    const timeoutMs = LEAST_MS + sizeBytes / SLOWEST_BYTES_PER_MS;
    await this.#api.request({ method: "POST", path: "/commit", query, json: {}, signal, timeoutMs });
    const made = await findImage(this.#api, name, signal);
    if (made === undefined) throw new HoldfastError("unavailable", `Docker made no image ${name}`);
    return made.Id;
  }

  async list(signal: AbortSignal): Promise<string[]> {
    const query = { filters: JSON.stringify({ label: [`${LABEL}=${await this.#owner()}`] }) };
    const call = { method: "GET", path: "/images/json", query, signal } as const;
    const images = (await this.#api.json<ListedImage[]>(call)) ?? [];
    // Looked at once more: what an engine lists by a filter that it does not know is not ours.
    const ours = await Promise.all(
      images.map(async (one) => ((await this.#isOurs(one)) ? namesIn(one) : [])),
    );
    return ours.flat().filter(isSafeId);
  }

  async remove(snapshotId: string, signal: AbortSignal): Promise<string> {
    const name = nameOf(snapshotId);
    const image = await findImage(this.#api, name, signal);
    if (image === undefined) return `the image ${name} does not exist`;
    if (!(await this.#isOurs({ Labels: image.Config?.Labels ?? null })))
      return `the image ${name} is somebody else's and was left alone`;
    try {
      await this.#api.request({ method: "DELETE", path: `/images/${name}`, expect: [404], signal });
    } catch (error) {
      if (refusalOf(error) !== 409) throw error;
      return `the image ${name} stays until the last container that was made from it is gone`;
    }
    if ((await findImage(this.#api, name, signal)) === undefined) return `the image ${name} does not exist`;
    throw new HoldfastError("unavailable", `the image ${name} is still there after its removal`);
  }

  /** By its id: the image that a snapshot was made with, or an error. */
  async require(
    id: string,
    { snapshotId, signal }: { snapshotId: string; signal: AbortSignal },
  ): Promise<Image> {
    const image = await findImage(this.#api, id, signal);
    if (image !== undefined) return image;
    throw new HoldfastError(
      "launch_failed",
      `the image of snapshot ${snapshotId} is not on this Docker any more (${id})`,
      {
        hint: `Somebody removed it (docker image prune -a?), or this is another daemon. For the rest of it: holdfast export ${snapshotId} | holdfast import - --provider docker`,
        started: "no",
      },
    );
  }

  async #isOurs({ Labels }: Pick<ListedImage, "Labels">): Promise<boolean> {
    return Labels?.[LABEL] === (await this.#owner());
  }

  /** Of this data dir; made once. */
  async #owner(): Promise<string> {
    const path = join(this.#layout.dataDir, "vault-id");
    const found = await readOrNothing(path);
    if (found !== undefined) return found;
    await makeLayout(this.#layout);
    const draft = `${path}.${randomUUID()}`;
    await writeDurably(draft, randomUUID());
    try {
      await link(draft, path);
    } catch (error) {
      // Another server was first.
      if (!isCode(error, "EEXIST")) throw error;
    } finally {
      await rm(draft, { force: true });
    }
    return readFile(path, "utf8");
  }
}

function nameOf(snapshotId: string): string {
  assertSafeId(snapshotId);
  return `${REPOSITORY}:${snapshotId}`;
}

function namesIn({ RepoTags }: ListedImage): string[] {
  return (RepoTags ?? []).flatMap((tag) => NAME.exec(tag)?.[1] ?? []);
}

async function readOrNothing(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function taken(name: string): HoldfastError {
  return new HoldfastError("already_exists", `there is an image ${name} already`, {
    hint: "It was left alone. Take the snapshot again, which gives it another id.",
    started: "no",
  });
}
