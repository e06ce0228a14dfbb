export { BLOCK_BYTES, paddingOf, type Segment, storedBytes, type TarEntry, TarError } from "./entry.ts";
export { readTar, type TarMember } from "./read-tar.ts";
export { TAR_END, tarHeader } from "./write-header.ts";
