/**
 * Ids that a caller may choose (commands, processes, sessions, terminals). They become file names inside the sandbox,
 * so nothing that a path could mean something by gets in. In names.ts there is a schema of it.
 */
export const CHOSEN_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;
