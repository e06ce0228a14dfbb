import type { Ears, Wire } from "@holdfast/lines";

/** A connection to a keeper's socket. */
export async function openUnixWire(socketPath: string, ears: Ears): Promise<Wire> {
  let unsent: Uint8Array | undefined;
  const socket = await Bun.connect({
    unix: socketPath,
    socket: {
      data: (_, bytes) => ears.heard(bytes),
      drain: (socket) => {
        if (unsent === undefined) return;
        const written = Math.max(0, socket.write(unsent));
        unsent = written < unsent.length ? unsent.subarray(written) : undefined;
      },
      close: () => ears.over(new Error("the connection was closed")),
      error: (_, error) => ears.over(error),
    },
  });
  return {
    get isSending() {
      return unsent !== undefined;
    },
    write(text) {
      const written = socket.write(text);
      if (written >= 0 && written < Buffer.byteLength(text)) unsent = Buffer.from(text).subarray(written);
      return written >= 0;
    },
    // Whoever has a keeper serves: it does not end by itself.
    holdProgram() {},
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    end: () => socket.end(),
  };
}
