export { Lines } from "./line.ts";
export { Garbled, type Reply } from "./reply.ts";
export type { StreamedReply } from "./stream.ts";
export { type Ears, Unanswered, type Wire } from "./wire.ts";
