/**
 * The keeper's own children. The runtime waits for these itself; whatever else becomes a child of PID 1 is an orphan
 * that the reaper waits for. Everything in the keeper that starts a program starts it through here.
 */
const own = new Set<number>();

export function isOwnChild(pid: number): boolean {
  return own.has(pid);
}

type SpawnOptions = Parameters<typeof Bun.spawn>[0];

/** `Bun.spawn`, with the child known to the reaper before it can possibly have ended. */
export function spawnOwnChild<Options extends SpawnOptions>(options: Options): Bun.Subprocess {
  const child = Bun.spawn(options);
  own.add(child.pid);
  const forget = () => own.delete(child.pid);
  child.exited.then(forget, forget);
  return child;
}
