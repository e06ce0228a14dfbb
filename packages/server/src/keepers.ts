import { KeeperLink, type Watch, watchKeeper } from "@holdfast/keeper-link";

interface Contact {
  readonly link: KeeperLink;
  readonly watch: Watch;
}

/** The lines to the keepers that this server has admitted, by instance id. Memory only: a restart builds it anew. */
export class Keepers {
  readonly #contacts = new Map<string, Contact>();

  link(instanceId: string): KeeperLink | undefined {
    return this.#contacts.get(instanceId)?.link;
  }

  /** Reaches the keeper, lets `admit` decide, and then watches for its end. Throws if any of it fails. */
  async connect(options: {
    instanceId: string;
    socketPath: string;
    secret: string;
    fence: number;
    admit: (link: KeeperLink) => Promise<void>;
    onEnd: () => void;
  }): Promise<void> {
    const { instanceId, socketPath, secret, fence } = options;
    const link = new KeeperLink({ socketPath, secret, fence });
    await options.admit(link);
    const watch = await watchKeeper({
      socketPath,
      onEnd: () => {
        this.#contacts.delete(instanceId);
        options.onEnd();
      },
    });
    this.drop(instanceId);
    this.#contacts.set(instanceId, { link, watch });
  }

  drop(instanceId: string): void {
    this.#contacts.get(instanceId)?.watch.close();
    this.#contacts.delete(instanceId);
  }

  close(): void {
    for (const instanceId of [...this.#contacts.keys()]) this.drop(instanceId);
  }
}
