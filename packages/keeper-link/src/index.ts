export { type ByteStream, Inbox } from "./byte-stream.ts";
export * from "./keeper-link.ts";
export type { PortConnection } from "./port-connection.ts";
export type { Watch } from "./watch.ts";
