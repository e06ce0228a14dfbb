/** A held connection whose only message is its end. */
export interface Watch {
  close(): void;
}

/**
 * Tells when a keeper ends, without asking again and again: a connection that nobody speaks on is closed by the
 * kernel the moment its process is gone. `onEnd` is called once, unless `close` came first.
 */
export async function watchKeeper(options: { socketPath: string; onEnd: () => void }): Promise<Watch> {
  let open = true;
  const ended = () => {
    if (!open) return;
    open = false;
    options.onEnd();
  };
  const socket = await Bun.connect({
    unix: options.socketPath,
    socket: { data() {}, close: ended, error: ended },
  });
  return {
    close() {
      open = false;
      socket.end();
    },
  };
}
