/** A held connection whose only message is its end. */
export interface Watch {
  close(): void;
}

/**
 * Said once: the runtime's HTTP server closes a connection that never asked anything after some ten seconds, whatever
 * its own idle timeout; one that has asked is left alone. It has no secret, and the answer is of no interest.
 */
const FIRST_WORDS = "GET /v1/keeper HTTP/1.1\r\nHost: keeper\r\n\r\n";

/**
 * Tells when a keeper ends, without asking again and again: a connection that is held is closed by the
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
  socket.write(FIRST_WORDS);
  return {
    close() {
      open = false;
      socket.end();
    },
  };
}
