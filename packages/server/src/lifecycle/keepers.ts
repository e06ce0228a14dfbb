import type { KeeperAddress, KeeperControl, KeeperDoor, Lease } from "@holdfast/core";
import { HoldfastError } from "@holdfast/protocol";

/** A line that broke sooner is an attempt that failed: one that breaks again and again must not make us spin. */
const SHORTEST_LINE_MS = 1_000;

interface Contact<Link> {
  readonly link: Link;
  readonly watch: { close(): void };
}

/** The lines to the keepers that this server has admitted, by instance id. Memory only: a restart builds it anew. */
export class Keepers<Link extends KeeperControl = KeeperControl> {
  readonly #contacts = new Map<string, Contact<Link>>();
  /** When the lines were made that broke by themselves. */
  readonly #broken = new Map<string, number>();
  /** Those that were seen to be paused: there is nobody to talk to. */
  readonly #resting = new Set<string>();
  readonly #door: KeeperDoor<Link>;

  constructor(door: KeeperDoor<Link>) {
    this.#door = door;
  }

  link(instanceId: string): Link | undefined {
    return this.#contacts.get(instanceId)?.link;
  }

  /**
   * Whether it is known how it is: there is a line to it, or it was seen to be paused since the last sign of a change.
   * That the rows do not call it paused is such a sign: another server, which shares them, has resumed it.
   */
  isKnown({ instanceId, phase }: Pick<Lease, "instanceId" | "phase">): boolean {
    return this.#contacts.has(instanceId) || (phase === "paused" && this.#resting.has(instanceId));
  }

  /** What was seen of it may not be so any more. A line that still stands goes on; a look follows. */
  doubt(instanceId: string): void {
    this.#resting.delete(instanceId);
  }

  rest(instanceId: string): void {
    this.drop(instanceId);
    this.#resting.add(instanceId);
  }

  /** Reaches the keeper, lets `admit` decide, and then watches for its end. Throws if any of it fails. */
  async connect(options: {
    instanceId: string;
    address: KeeperAddress;
    secret: string;
    fence: number;
    now: number;
    admit: (link: KeeperControl) => Promise<void>;
    onEnd: () => void;
  }): Promise<void> {
    const { instanceId, address, secret, fence, now } = options;
    if (now - (this.#broken.get(instanceId) ?? Number.NEGATIVE_INFINITY) < SHORTEST_LINE_MS)
      throw brokeAtOnce();
    const link = this.#door({ address, secret, fence });
    await options.admit(link);
    let hasEnded = false;
    const watch = await link.watch({
      onEnd: () => {
        hasEnded = true;
        // A line that was replaced meanwhile says nothing about the one that is there now.
        if (this.#contacts.get(instanceId)?.link !== link) return;
        this.#contacts.delete(instanceId);
        this.#broken.set(instanceId, now);
        options.onEnd();
      },
    });
    if (hasEnded) throw brokeAtOnce();
    this.drop(instanceId);
    this.#contacts.set(instanceId, { link, watch });
  }

  drop(instanceId: string): void {
    this.#broken.delete(instanceId);
    this.#resting.delete(instanceId);
    this.#contacts.get(instanceId)?.watch.close();
    this.#contacts.delete(instanceId);
  }

  close(): void {
    for (const instanceId of [...this.#contacts.keys()]) this.drop(instanceId);
  }
}

function brokeAtOnce(): HoldfastError {
  return new HoldfastError("unavailable", "the line to the keeper broke as soon as it was made");
}
