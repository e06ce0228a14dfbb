/** What visitors may take of the server. */
export interface PreviewLimits {
  readonly connections: number;
  readonly connectionsOfSandbox: number;
  readonly headMs: number;
  readonly idleMs: number;
}

export const previewLimits: PreviewLimits = {
  // Each may hold half a megabyte.
  connections: 1024,
  // So that the visitors of one sandbox leave room for the others'.
  connectionsOfSandbox: 256,
  // From a head's first byte on; a browser sends it in one piece.
  headMs: 10_000,
  // Between two requests of one connection.
  idleMs: 60_000,
};
