export { type Ears, Lines, type LinesOptions, Unanswered, type Wire } from "./line.ts";
export { Garbled, type Reply } from "./reply.ts";
