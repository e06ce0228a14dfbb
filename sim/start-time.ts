/** What the clocks say when a run begins. Any time that is not 0 will do: 0 hides mistakes. */
export const START_MS = 1_700_000_000_000;
