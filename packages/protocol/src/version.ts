/** The wire contract's version. A keeper and a server talk only if the major part is equal. */
export const PROTOCOL_VERSION = "1.0";

export const DEFAULT_PORT = 4750;
